// SPDX-License-Identifier: Apache-2.0
#include "tests/core/virtual/crash_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/reap.h"
#include "core/slot_table.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

std::string Describe(const CrashPool::Block& block) {
  return absl::StrCat("block ", block.pfn.value, " of order ", block.order);
}

bool Overlap(const CrashPool::Block& a, const CrashPool::Block& b) {
  return a.pfn.value < b.pfn.value + (1u << b.order) &&
         b.pfn.value < a.pfn.value + (1u << a.order);
}

}  // namespace

CrashPool::CrashPool(const CrashPoolOptions& options)
    : pool_({.topology = TopologyBuilder(options.topology).Build(),
             .node_pages = options.node_pages,
             .first_sections = options.first_sections,
             .policy = PolicyName(options.limits.policy),
             .guard = options.guard}),
      pages_not_told_(options.pages_not_told) {
  for (auto& allocator : allocators_) allocator = pool_.MakeAllocator();
  for (Zone& zone : segment().zones()) {
    pool_.Publish(options.limits, zone.shared().number);
    Store(zone.shared().depot_max_pages, options.depot_max_pages);
  }
  for (uint32_t fiber = 0; fiber < kCrashFibers; ++fiber) {
    As(fiber, [&] {
      threads_[fiber].process = AllocatorHere().owner();
      CHECK(TakeThreadSlot(segment(), AllocatorHere().owner(), &ThreadHere()));
      const Pfn pfn = AllocatorHere().Allocate(0);
      CHECK(AllocatorHere().Free(pfn, 0) == FreeResult::kFreed);
    });
  }
  pool_.DrainEverything();
}

void CrashPool::As(uint32_t fiber, const std::function<void()>& body) {
  std::vector<std::function<void()>> bodies(fiber + 1, [] {});
  bodies[fiber] = body;
  env::VirtualMachine machine(2);
  if (machine.Run(bodies) != env::VirtualMachine::Outcome::kFinished) {
    Complain(absl::StrCat("fiber ", fiber, " cannot go on"));
  }
}

void CrashPool::Complain(std::string what) {
  if (memory_.complaint.empty()) memory_.complaint = std::move(what);
}

void CrashPool::Take(int order, PageType type) {
  const Block block{AllocatorHere().Allocate(order, type), order};
  if (block.pfn.value == kNil) {
    Complain(absl::StrCat("process ", ProcessHere(), " got no block of order ",
                          order));
    return;
  }
  for (uint32_t dead = 0; dead < kCrashProcesses; ++dead) {
    if (!Dead(dead)) continue;
    for (const Block& held : memory_.hands[dead]) {
      if (!Overlap(block, held)) continue;
      Complain(absl::StrCat("process ", ProcessHere(), " was given ",
                            Describe(block), ", the dead one has ",
                            Describe(held)));
    }
  }
  HandsHere().push_back(block);
}

CrashPool::Block CrashPool::TakeOut(int order) {
  std::vector<Block>& hands = HandsHere();
  const auto it =
      std::find_if(hands.begin(), hands.end(),
                   [&](const Block& block) { return block.order == order; });
  if (it == hands.end()) {
    Complain(absl::StrCat("no block of order ", order, " to give away"));
    return {Pfn{}, order};
  }
  const Block block = *it;
  hands.erase(it);
  return block;
}

void CrashPool::Give(int order) {
  // Whose it is while it is under way nobody knows.
  const Block block = TakeOut(order);
  const FreeResult result = AllocatorHere().Free(block.pfn, order);
  if (result == FreeResult::kFreed) return;
  Complain(absl::StrCat("process ", ProcessHere(), " could not free ",
                        Describe(block), ": ", FreeResultName(result)));
}

void CrashPool::Offer(int order) {
  const Block block = TakeOut(order);
  memory_.on_offer.push_back(block);
  if (AllocatorHere().Offer(block.pfn, order) != FreeResult::kFreed) {
    Complain(absl::StrCat(Describe(block), " could not be offered"));
  }
}

void CrashPool::Adopt() {
  for (const Block& block : memory_.on_offer) {
    if (AllocatorHere().Adopt(block.pfn, block.order) == FreeResult::kFreed) {
      HandsHere().push_back(block);
    }
  }
}

void CrashPool::Revoke() {
  for (const Block& block : memory_.on_offer) {
    if (AllocatorHere().Revoke(block.pfn, block.order) == FreeResult::kFreed) {
      HandsHere().push_back(block);
    }
  }
}

void CrashPool::GiveAll() {
  while (!HandsHere().empty()) Give(HandsHere().back().order);
}

void CrashPool::DrainPagesetOf(uint32_t cpu, uint32_t zone) {
  Pageset(mapping(), segment().zone(zone), *mapping().PagesetOf(zone, cpu),
          ThreadHere())
      .Drain();
}

void CrashPool::DecayPagesetOf(uint32_t cpu, uint32_t zone) {
  Pageset(mapping(), segment().zone(zone), *mapping().PagesetOf(zone, cpu),
          ThreadHere())
      .Decay();
}

void CrashPool::DrainDepot(uint32_t zone) {
  Pageset::DrainDepot(mapping(), segment().zone(zone), ThreadHere());
}

void CrashPool::DrainAll() {
  for (uint32_t zone = 0; zone < mapping().nr_zones; ++zone) {
    for (uint32_t cpu = 0; cpu < mapping().nr_cpus; ++cpu) {
      DrainPagesetOf(cpu, zone);
    }
    DrainDepot(zone);
  }
}

void CrashPool::Work() {
  Take(0);
  Take(1);
  Take(4);
  Give(4);
  Give(0);
  DrainPagesetOf((env::CurrentFiber() + 1) % 2);
  DrainDepot();
}

void CrashPool::Die(env::VirtualMachine& machine, uint32_t fiber) {
  const uint32_t process = ProcessOf(fiber);
  for (uint32_t sibling = 0; sibling < kCrashFibers; ++sibling) {
    if (ProcessOf(sibling) == process) machine.Kill(sibling);
  }
  MarkDead(process);
}

void CrashPool::MarkDead(uint32_t process) {
  memory_.dead[process] = true;
  const Mapping& m = mapping();
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    if (LoadRelaxed(m.threads[i].process) == OwnerOf(process)) {
      m.lives[i].word.fetch_or(kLifeDied);
    }
  }
}

void CrashPool::ReapTheDead() {
  FreeUnownedSlots(segment());
  for (uint32_t process = 0; process < kCrashProcesses; ++process) {
    if (!Dead(process)) continue;
    memory_.hands[process].clear();  // from here on others may have them
    ReapProcess(segment(), OwnerOf(process), ThreadHere());
  }
}

void CrashPool::Recover() { RecoverDeadOwners(segment(), ThreadHere()); }

CrashPool::Events CrashPool::EventsNow() {
  const Mapping& m = mapping();
  Events events;
  const auto add = [&](const char* name, const Shared64& count) {
    events.counts[name] += LoadRelaxed(count);
  };
  constexpr const char* kFlushes[] = {"flushed", "flushed free-high", "drained",
                                      "decayed"};
  for (uint32_t i = 0; i < m.nr_zones * m.nr_cpus; ++i) {
    const PagesetShared& pageset = m.pagesets[i];
    add("refilled", pageset.refilled_pages);
    for (size_t cause = 0; cause < kNumFlushCauses; ++cause) {
      add(kFlushes[cause], pageset.flushed_pages[cause]);
    }
    for (const Shared64& n : pageset.direct_allocations) add("direct takes", n);
    for (const Shared64& n : pageset.direct_frees) add("direct gives", n);
  }
  for (uint32_t i = 0; i < m.nr_zones; ++i) {
    add("parked", m.zones[i].depot_pushes);
    add("popped", m.zones[i].depot_pops);
    add("holds", m.zones[i].lock_counters.acquisitions);
    add("pages managed", m.zones[i].managed_pages);
  }
  const PagesetShared& pageset = *m.PagesetOf(0, 0);
  for (size_t list = 0; list < kNumLists; ++list) {
    const uint64_t top = LoadRelaxed(pageset.top[list]);
    const uint32_t spare = LoadRelaxed(pageset.lists[list].spare);
    if (top == kNoTop && spare == kNoChunk) continue;
    absl::StrAppend(&events.lists, " list ", list, ": ", TopCount(top));
    if (spare != kNoChunk) {
      absl::StrAppend(&events.lists, "+", LoadRelaxed(m.chunks[spare].count));
    }
    const uint32_t deque = LoadRelaxed(pageset.lists[list].nr_deque);
    if (deque != 0) absl::StrAppend(&events.lists, " and ", deque);
  }
  return events;
}

CrashPool::Moment CrashPool::Save() {
  if (!snapshot_) snapshot_.emplace(segment(), kCrashFibers);
  return {snapshot_->Now(), memory_};
}

void CrashPool::PutBack(const Moment& moment) {
  snapshot_->PutBack(moment.shared);
  memory_ = moment.memory;
}

std::string CrashPool::Problem() {
  if (!memory_.complaint.empty()) return memory_.complaint;
  ZoneChecker checker(segment());
  std::string problem = checker.Check();
  if (problem.empty()) problem = ProblemOfLocks();
  if (problem.empty()) problem = ProblemOfSlots();
  if (problem.empty()) problem = ProblemOfHands(checker.pages().of_owner);
  return problem;
}

// Also of pagesets that no bit says were used.
std::string CrashPool::ProblemOfLocks() {
  const Mapping& m = mapping();
  for (uint32_t i = 0; i < m.nr_zones * m.nr_cpus; ++i) {
    const PagesetShared& pageset = m.pagesets[i];
    if (pageset.guard.HolderNow() != 0) {
      return absl::StrCat("the guard of pageset ", i, " is held by ",
                          pageset.guard.HolderNow());
    }
    const uint32_t cpu = i % m.nr_cpus;
    const uint64_t used =
        LoadRelaxed(m.zones[i / m.nr_cpus].used_cpus[cpu / 64]);
    if ((used >> (cpu % 64) & 1) != 0) continue;
    const bool empty =
        LoadRelaxed(pageset.pages) == 0 &&
        std::all_of(pageset.top.begin(), pageset.top.end(),
                    [](const Shared64& top) { return top == kNoTop; });
    if (!empty) return absl::StrCat("pageset ", i, " is not known to be used");
  }
  return "";
}

std::string CrashPool::ProblemOfSlots() {
  const Mapping& m = mapping();
  const auto living = [&](ProcessOwner owner) {
    for (uint32_t process = 0; process < kCrashProcesses; ++process) {
      if (OwnerOf(process) == owner && !Dead(process)) return true;
    }
    return false;
  };
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    const ProcessSlot& slot = m.processes[i];
    if (slot.limit_lock.HolderNow() != 0 && living(LoadRelaxed(slot.owner))) {
      return absl::StrCat("the limit lock of process slot ", i, " is held");
    }
    const uint32_t state = LoadRelaxed(slot.state);
    const uint32_t owner = LoadRelaxed(slot.owner);
    if (state == static_cast<uint32_t>(SlotState::kFree) && owner == 0) {
      continue;
    }
    if (state != static_cast<uint32_t>(SlotState::kAttached) ||
        !living(owner)) {
      return absl::StrCat("process slot ", i, " is in state ", state,
                          " and names ", owner, ", which is not alive");
    }
  }
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    const uint32_t owner = LoadRelaxed(m.threads[i].owner);
    const uint32_t process = LoadRelaxed(m.threads[i].process);
    if (owner == 0 && process == 0) continue;
    if (owner == 0 || owner == kCreatorOwner || !living(process)) {
      return absl::StrCat("thread slot ", i, " is ", owner, "'s of process ",
                          process, ", which is not alive");
    }
  }
  return "";
}

std::string CrashPool::ProblemOfHands(
    const std::map<ProcessOwner, uint64_t>& named) {
  for (uint32_t process = 0; process < kCrashProcesses; ++process) {
    uint64_t pages = 0;
    for (const Block& block : memory_.hands[process]) {
      pages += uint64_t{1} << block.order;
      const PageWord word(LoadRelaxed(mapping().page(block.pfn).word));
      if (word.Is(PageKind::kAllocated, block.order) &&
          word.ref() == OwnerOf(process)) {
        continue;
      }
      return absl::StrCat(Describe(block), " is process ", process,
                          "'s no more: kind ", static_cast<int>(word.kind()),
                          " order ", word.order(), " ref ", word.ref());
    }
    const auto it = named.find(OwnerOf(process));
    const uint64_t said = it == named.end() ? 0 : it->second;
    const uint64_t counted = HeldPages(segment(), OwnerOf(process));
    if (said != pages || counted < pages || counted > pages + pages_not_told_) {
      return absl::StrCat("process ", process, " has ", pages, " pages, ", said,
                          " name it, it counts ", counted);
    }
  }
  return "";
}

std::string CrashPool::ProblemWhenEmpty() {
  std::string problem = Problem();
  for (Zone& zone : segment().zones()) {
    const uint64_t managed = LoadRelaxed(zone.shared().managed_pages);
    if (!problem.empty() || zone.FreePages() == managed) continue;
    problem = absl::StrCat("zone ", zone.shared().number, " has ",
                           zone.FreePages(), " free pages of ", managed);
  }
  return problem;
}

}  // namespace memtuned
