// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/pool_takeover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/memmap_check.h"
#include "core/reap.h"
#include "core/slot_table.h"
#include "daemon/log.h"
#include "daemon/pool/pool_search.h"
#include "daemon/pool/process_info.h"

namespace memtuned {
namespace {

absl::Status CheckFrames(const Segment& segment) {
  const std::vector<int>& fds = segment.frame_fds();
  if (fds.size() != segment.mapping().nr_zones) {
    return absl::DataLossError(absl::StrCat(
        fds.size(), " frame files for ", segment.mapping().nr_zones, " zones"));
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    const uint64_t needed = segment.mapping().zone_info[i].present_pages
                            << kPageShift;
    struct stat file {};
    if (fstat(fds[i], &file) != 0 ||
        static_cast<uint64_t>(file.st_size) < needed) {
      return absl::DataLossError(absl::StrCat(
          "frame file ", i, " has ", file.st_size, " bytes; needed ", needed));
    }
  }
  return absl::OkStatus();
}

// Maps the pool; changes nothing.
absl::StatusOr<std::unique_ptr<Segment>> MapPool(const KeptPool& pool) {
  std::vector<int> copies;
  for (const FileDescriptor& fd : pool.files) {
    copies.push_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  }
  const int metadata = copies.front();
  copies.erase(copies.begin());
  auto attached = Segment::Attach(metadata, std::move(copies));
  if (!attached.ok()) return attached.status();
  if (absl::Status s = CheckFrames(**attached); !s.ok()) return s;
  if (pool.name != (*attached)->name()) {
    return absl::DataLossError(
        absl::StrCat("the segment is of pool \"", (*attached)->name(), "\""));
  }
  return attached;
}

// Puts right what the dead daemon left, and looks at the memmap.
absl::Status Recover(Segment& segment) {
  BecomeDaemon(segment);
  ThreadContext thread;
  TakeThreadSlot(segment, kDaemonProcess, &thread);
  if (RecoverDeadOwners(segment, thread)) {
    ReapThreads(segment, kDaemonProcess, thread);
  } else {
    LogEvent(LogLevel::kWarning, "locks-not-recovered",
             {{"pool", segment.name()},
              {"note", "a process that holds a lock is stopped"}});
  }
  FreeUnownedSlots(segment);
  absl::Status memmap = CheckMemmap(segment, thread);
  ReleaseThreadSlot(segment, thread);
  return memmap;
}

// kFailedPrecondition when the pool was made for other nodes or CPUs.
absl::Status AnotherMachine(const SegmentConfig& wanted,
                            const Segment& segment) {
  const Mapping& m = segment.mapping();
  const auto cpus =
      static_cast<uint32_t>(std::max(1, wanted.topology.CpuNumberEnd()));
  bool same = m.nr_nodes == wanted.nodes.size() && m.nr_cpus == cpus;
  for (uint32_t i = 0; same && i < m.nr_nodes; ++i) {
    same = segment.nodes()[i].os_index ==
           static_cast<uint32_t>(wanted.nodes[i].os_index);
  }
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "it was made for ", m.nr_nodes, " nodes and ", m.nr_cpus,
      " CPUs; the topology has ", wanted.nodes.size(), " and ", cpus));
}

// Settings that a pool has for life and that differ from the wanted ones.
std::vector<std::string> Differences(const SegmentConfig& wanted,
                                     const Segment& segment) {
  std::vector<std::string> differing;
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_nodes; ++i) {
    const uint32_t zone = segment.nodes()[i].zone;
    const uint64_t pages =
        zone < m.nr_zones ? m.zone_info[zone].present_pages : 0;
    if (pages != wanted.nodes[i].pages) {
      differing.emplace_back("size");
      break;
    }
  }
  if (segment.header().populate != wanted.populate) {
    differing.emplace_back("populate");
  }
  return differing;
}

// Tunables that are not what the configuration gives a new pool.
std::string TunablesThatDiffer(const SegmentConfig& wanted,
                               const Segment& segment) {
  std::vector<std::string> names;
  for (const TunableDef& def : TunableTable()) {
    if (segment.Tunable(def.id) !=
        wanted.tunables[static_cast<size_t>(def.id)]) {
      names.emplace_back(def.name);
    }
  }
  return absl::StrJoin(names, ",");
}

// What slot `slot` of a process is watched by now; nothing when it is gone.
std::optional<ProcessWatch> WatchOf(const ProcessSlot& slot, KeptPool& pool) {
  ProcessWatch watch;
  watch.owner = LoadRelaxed(slot.owner);
  for (ProcessWatch& kept : pool.clients) {
    if (kept.owner == watch.owner) return std::move(kept);
  }
  const uint32_t pid = LoadRelaxed(slot.pid);
  auto pidfd = OpenProcess(pid, LoadRelaxed(slot.start_time_ticks));
  if (pidfd.ok()) {
    watch.pidfd = *std::move(pidfd);
  } else if (absl::IsNotFound(pidfd.status())) {
    return std::nullopt;
  } else {
    // It keeps what it has: it may well be alive.
    LogEvent(LogLevel::kError, "process-not-watched",
             {{"pool", pool.name},
              {"pid", absl::StrCat(pid)},
              {"error", std::string(pidfd.status().message())}});
  }
  return watch;
}

void FindProcesses(KeptPool& pool, TakenPool& taken) {
  const Mapping& m = taken.segment->mapping();
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    const ProcessSlot& slot = m.processes[i];
    const ProcessOwner owner = LoadRelaxed(slot.owner);
    if (Load(slot.state) == static_cast<uint32_t>(SlotState::kFree)) continue;
    std::optional<ProcessWatch> watch = WatchOf(slot, pool);
    const bool gone =
        !watch.has_value() || watch->HasEnded() ||
        Load(slot.state) == static_cast<uint32_t>(SlotState::kReaping);
    if (!watch.has_value()) watch.emplace().owner = owner;
    (gone ? taken.gone : taken.attached).push_back(*std::move(watch));
  }
}

void LogTakeover(const KeptPool& pool, const SegmentConfig& wanted,
                 const TakenPool& taken) {
  const Segment& segment = *taken.segment;
  LogEvent(
      LogLevel::kInfo, "pool-taken-over",
      {{"pool", pool.name},
       {"source", pool.source},
       {"generation", absl::StrCat(LoadRelaxed(segment.header().generation))},
       {"pages", absl::StrCat(segment.mapping().nr_pages)},
       {"processes", absl::StrCat(taken.attached.size())},
       {"gone", absl::StrCat(taken.gone.size())},
       {"tunables-not-as-configured", TunablesThatDiffer(wanted, segment)}});
}

// Goes on with a pool that can be served. Returns: an empty one when it is not
// to be: without a process there is nothing to go on for.
TakenPool GoOn(const SegmentConfig& wanted, KeptPool& pool,
               std::unique_ptr<Segment> segment) {
  const std::string differing =
      absl::StrJoin(Differences(wanted, *segment), ",");
  TakenPool taken;
  taken.segment = std::move(segment);
  FindProcesses(pool, taken);
  if (taken.attached.empty() && !differing.empty()) {
    LogEvent(
        LogLevel::kInfo, "pool-replaced",
        {{"pool", pool.name}, {"source", pool.source}, {"differs", differing}});
    return {};
  }
  LogTakeover(pool, wanted, taken);
  if (!differing.empty()) {
    LogEvent(LogLevel::kWarning, "pool-not-as-configured",
             {{"pool", pool.name},
              {"differs", differing},
              {"note", "needs a restart without attached processes"}});
  }
  return taken;
}

TakenPool TakeStored(const SegmentConfig& wanted, KeptPool pool,
                     FdStore& store) {
  auto segment = MapPool(pool);
  absl::Status status = segment.status();
  if (status.ok()) status = AnotherMachine(wanted, **segment);
  if (status.ok()) status = Recover(**segment);
  if (status.ok()) {
    TakenPool taken = GoOn(wanted, pool, *std::move(segment));
    if (taken.segment == nullptr) store.ForgetPool(pool.name);
    return taken;
  }
  if (!absl::IsFailedPrecondition(status)) {
    LogEvent(LogLevel::kError, "pool-broken",
             {{"pool", pool.name},
              {"source", pool.source},
              {"error", std::string(status.message())}});
  }
  store.Leave(std::move(pool), std::string(status.message()));
  return {};
}

// Nothing of a pool is touched before it is certain that nobody serves it.
TakenPool TakeFound(const SegmentConfig& wanted, FoundPool found) {
  auto segment = MapPool(found.pool);
  absl::Status status = segment.status();
  if (status.ok() && !HeldByItsProcesses(found, **segment)) {
    status = absl::FailedPreconditionError(
        absl::StrCat("not all who have it open are attached to it: processes ",
                     absl::StrJoin(found.holders, ", ")));
  }
  if (status.ok()) status = AnotherMachine(wanted, **segment);
  if (status.ok()) status = Recover(**segment);
  if (status.ok()) return GoOn(wanted, found.pool, *std::move(segment));
  LogEvent(LogLevel::kInfo, "pool-not-taken-over",
           {{"pool", found.pool.name},
            {"source", found.pool.source},
            {"why", std::string(status.message())}});
  return {};
}

}  // namespace

TakenPool TakeOverPool(const SegmentConfig& wanted, FdStore& store) {
  if (std::optional<KeptPool> kept = store.Take(wanted.name)) {
    return TakeStored(wanted, *std::move(kept), store);
  }
  for (FoundPool& found : FindPoolsInProcesses(wanted.name)) {
    TakenPool taken = TakeFound(wanted, std::move(found));
    if (taken.segment != nullptr) return taken;
  }
  return {};
}

}  // namespace memtuned
