// SPDX-License-Identifier: Apache-2.0
// Deaths of those who run the pool: limits, policies, slots, sections.
#include "core/process_limit.h"
#include "core/process_mems.h"
#include "core/reap.h"
#include "core/recalculate.h"
#include "core/slot_table.h"
#include "tests/core/virtual/crash_cases.h"

namespace memtuned {
namespace {

const CrashPoolOptions kSmallPool{.limits = LimitsOf(Policy::kAdaptive, 2, 8)};

// Limits and watermarks are those of the tunables, in every zone.
std::string LimitsProblem(CrashPool& pool) {
  const auto targets =
      ComputeTargets(pool.segment(), InputsNow(pool.segment()));
  for (uint32_t zone = 0; zone < pool.mapping().nr_zones; ++zone) {
    if (!(pool.zone(zone).LimitsNow() == targets[zone].limits)) {
      return "limits are not those of the tunables";
    }
  }
  return "";
}

void RecalculateHere(CrashPool& pool) {
  Recalculate(pool.segment(), RecalculateTrigger::kRequest,
              pool.ThreadHere().owner);
}

void AddTuning(std::vector<CrashCase>& cases) {
  cases.push_back(
      {.name = "Recalculate",
       .pool = {.node_pages = {4096},
                .limits = LimitsOf(Policy::kAdaptive, 1, 4)},
       .prepare =
           [](CrashPool& pool) {
             Store(pool.segment().header().tunables[static_cast<size_t>(
                       TunableId::kPagesetPolicy)],
                   EncodeTunable(GetTunable(TunableId::kPagesetPolicy),
                                 std::string("memtuned")));
           },
       .victim = RecalculateHere,
       .meanwhile = [](CrashPool& pool) { pool.Take(0); },
       .work =
           [](CrashPool& pool) {
             RecalculateHere(pool);
             pool.Work();
           },
       .check = LimitsProblem});
  cases.push_back({.name = "SetMemoryPolicy",
                   .pool = {.topology = "2 nodes, 2 cpus",
                            .node_pages = {128},
                            .limits = LimitsOf(Policy::kAdaptive, 1, 4)},
                   .victim =
                       [](CrashPool& pool) {
                         NodeMask second;
                         second.Set(1);
                         if (!pool.AllocatorHere()
                                  .SetMemoryPolicy(MemoryPolicy::kBind, second)
                                  .ok()) {
                           pool.Complain("no such policy");
                         }
                       },
                   .work =
                       [](CrashPool& pool) {
                         if (!pool.AllocatorHere()
                                  .SetMemoryPolicy(MemoryPolicy::kLocal, {})
                                  .ok()) {
                           pool.Complain("no such policy");
                         }
                         pool.Work();
                       }});
  // An operator narrows the nodes of another process.
  cases.push_back({.name = "WriteAnothersMems",
                   .pool = {.topology = "2 nodes, 2 cpus",
                            .node_pages = {128},
                            .limits = LimitsOf(Policy::kAdaptive, 1, 4)},
                   .victim =
                       [](CrashPool& pool) {
                         NodeMask second;
                         second.Set(1);
                         auto& lock = pool.segment().header().tuning_lock;
                         ProcessSlot& slot = *FindProcessSlot(
                             pool.segment(), pool.OwnerOf(kNeighbour));
                         lock.Lock(pool.ThreadHere().owner);
                         SetCpusetLocked(pool.segment(), slot,
                                         pool.OwnerOf(kNeighbour), second);
                         lock.Unlock();
                       },
                   .meanwhile = [](CrashPool& pool) { pool.Take(0); }});
}

// Slots that were handed out to nobody the pool knows belong to processes that
// ended before they could say so.
std::string ReapStrangers(CrashPool& pool) {
  pool.As(kReaper, [&] {
    const Mapping& m = pool.mapping();
    for (uint32_t i = 0; i < m.nr_processes; ++i) {
      const ProcessOwner owner = LoadRelaxed(m.processes[i].owner);
      bool known = owner == 0;
      for (uint32_t process = 0; process < kCrashProcesses; ++process) {
        known |= pool.OwnerOf(process) == owner;
      }
      if (!known) ReapProcess(pool.segment(), owner, pool.ThreadHere());
    }
  });
  return "";
}

void AddSlots(std::vector<CrashCase>& cases) {
  cases.push_back(
      {.name = "AttachAProcess",
       .pool = kSmallPool,
       .victim =
           [](CrashPool& pool) {
             if (!TakeProcessSlot(pool.segment(), {.pid = 1}).ok()) {
               pool.Complain("no process slot");
             }
           },
       .check = ReapStrangers});
  cases.push_back(
      {.name = "TakeAndReleaseAThreadSlot",
       .pool = kSmallPool,
       .victim = [](CrashPool& pool) {
         ThreadContext context;
         if (!TakeThreadSlot(pool.segment(), pool.OwnerOf(kVictim), &context)) {
           pool.Complain("no thread slot");
         }
         ReleaseThreadSlot(pool.segment(), context);
       }});
  // Nobody's thread runs and nothing is held.
  cases.push_back({.name = "ReleaseAProcessSlot",
                   .pool = kSmallPool,
                   .prepare = [](CrashPool& p) { p.MarkDead(kHeir); },
                   .victim =
                       [](CrashPool& pool) {
                         ReleaseProcessSlot(pool.segment(),
                                            pool.OwnerOf(kHeir));
                       }});
}

void LimitProcess(CrashPool& pool, uint32_t process, uint64_t pages) {
  const ProcessOwner owner = pool.OwnerOf(process);
  SetOwnLimit(pool.segment(), *FindProcessSlot(pool.segment(), owner), owner,
              pages);
}

void AddLimits(std::vector<CrashCase>& cases) {
  // The sibling has an allowance, of which the victim needs some.
  cases.push_back({.name = "TakeWithinALimit",
                   .pool = kSmallPool,
                   .prepare =
                       [](CrashPool& pool) {
                         LimitProcess(pool, kVictim, 8);
                         pool.As(kSibling, [&] { pool.Take(0); });
                       },
                   .victim = [](CrashPool& pool) { pool.Take(2); }});
  // The daemon that comes after ends it.
  cases.push_back(
      {.name = "LimitAnotherProcess",
       .pool = kSmallPool,
       .victim = [](CrashPool& pool) { LimitProcess(pool, kNeighbour, 64); },
       .check = [](CrashPool& pool) -> std::string {
         pool.As(kReaper, [&] { BecomeDaemon(pool.segment()); });
         const ProcessSlot& slot =
             *FindProcessSlot(pool.segment(), pool.OwnerOf(kNeighbour));
         return LoadRelaxed(slot.limit_pages) == LimitOf(pool.segment(), slot)
                    ? ""
                    : "the limit is not the one in force";
       }});
}

// Returns: false when there is no section left.
bool InitialiseHere(CrashPool& pool) {
  const auto more =
      pool.segment().InitialiseNextSection(0, pool.ThreadHere().owner);
  if (!more.ok()) pool.Complain("the section did not come");
  return more.ok() && *more;
}

// The rest of the sections comes, and none was counted twice.
std::string SectionsProblem(CrashPool& pool) {
  pool.As(kReaper, [&] {
    while (InitialiseHere(pool)) {
    }
  });
  const ZoneShared& z = pool.zone().shared();
  if (LoadRelaxed(z.managed_pages) != z.present_pages) {
    return "a section is missing";
  }
  return pool.segment().Initialised() ? "" : "sections were miscounted";
}

void AddSections(std::vector<CrashCase>& cases) {
  cases.push_back({.name = "InitialiseAPartOfASection",
                   .pool = {.node_pages = {kPagesPerSection + 48},
                            .first_sections = 1,
                            .limits = LimitsOf(Policy::kAdaptive, 2, 8)},
                   .victim = InitialiseHere,
                   .meanwhile = InitialiseHere,
                   .check = SectionsProblem});
  // Not the last one; this policy recalculates then.
  cases.push_back({.name = "InitialiseAWholeSection",
                   .pool = {.node_pages = {3 * kPagesPerSection},
                            .first_sections = 1,
                            .limits = LimitsOf(Policy::kMemtuned, 2, 8)},
                   .victim = InitialiseHere,
                   .meanwhile = InitialiseHere,
                   .check = SectionsProblem});
}

}  // namespace

std::vector<CrashCase> ControlCrashCases() {
  std::vector<CrashCase> cases;
  AddTuning(cases);
  AddSlots(cases);
  AddLimits(cases);
  AddSections(cases);
  return cases;
}

// The victim is the one who reaps.
std::vector<CrashCase> ReapCrashCases() {
  std::vector<CrashCase> cases;
  const auto reap = [](CrashPool& pool) { pool.ReapTheDead(); };
  cases.push_back({.name = "ReapBlocks",
                   .pool = kSmallPool,
                   .prepare =
                       [](CrashPool& pool) {
                         pool.As(kHeir, [&] {
                           for (int order : {0, 0, 0, 3, 5}) pool.Take(order);
                           pool.Give(0);
                           pool.Offer(3);
                         });
                         pool.MarkDead(kHeir);
                       },
                   .victim = reap,
                   .meanwhile = [](CrashPool& pool) { pool.Adopt(); }});
  // More than one hold's worth.
  cases.push_back({.name = "ReapManyBlocks",
                   .pool = kSmallPool,
                   .prepare =
                       [](CrashPool& pool) {
                         pool.As(kHeir, [&] {
                           for (int i = 0; i < 70; ++i) pool.Take(0);
                         });
                         pool.MarkDead(kHeir);
                       },
                   .victim = reap});
  cases.push_back({.name = "ReapOneWithNothing",
                   .pool = kSmallPool,
                   .prepare = [](CrashPool& p) { p.MarkDead(kHeir); },
                   .victim = reap});
  return cases;
}

}  // namespace memtuned
