// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/process_monitor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/thread_state.h"
#include "daemon/log.h"
#include "daemon/pool/freezer.h"
#include "daemon/pool/process_info.h"

namespace memtuned {
namespace {

ProcessOwner OwnerOf(const ProcessSnapshot& process) {
  return MakeProcessOwner(process.slot, process.generation);
}

ThreadState StateOf(const ProcessSnapshot& process, uint32_t tid) {
  return StateOfThread(static_cast<uint32_t>(process.pid),
                       process.start_time_ticks, tid);
}

// "nodes/0/zones/Normal", "pageset nodes/0/zones/Normal/pagesets/3",
// "the tuning lock".
std::string LockText(LockKind lock, const std::string& where) {
  if (lock == LockKind::kZone) return where;
  if (where.empty()) return absl::StrCat("the ", LockKindName(lock), " lock");
  return absl::StrCat(LockKindName(lock), " ", where);
}

std::string SecondsText(double seconds) {
  return absl::StrCat(static_cast<int64_t>(std::floor(seconds)));
}

// What is not in `present` any more is forgotten.
template <typename Key, typename Value, typename Present>
void KeepOnly(std::map<Key, Value>& all, const Present& present) {
  std::erase_if(all, [&](const auto& entry) {
    return present.find(entry.first) == present.end();
  });
}

}  // namespace

void ProcessMonitor::Look(Snapshot* snapshot) {
  const double now = std::chrono::duration<double>(
                         std::chrono::steady_clock::now().time_since_epoch())
                         .count();
  std::map<ProcessOwner, ProcessSnapshot*> processes;
  for (ProcessSnapshot& process : snapshot->processes) {
    processes[OwnerOf(process)] = &process;
    LookAt(process, now, snapshot->unix_seconds);
  }
  KeepOnly(seen_, processes);
  std::map<HeldBy, bool> held;
  for (const LockHolder& holder : ReadLockHolders(*segment_)) {
    const auto process = processes.find(holder.process);
    if (process == processes.end() ||
        process->second->state == ProcessState::kReaping) {
      continue;
    }
    held[{holder.lock, holder.where, holder.owner}] = true;
    LookAtHolder(holder, *process->second, now);
  }
  KeepOnly(holds_, held);
  Report(snapshot, now);
}

void ProcessMonitor::LookAt(ProcessSnapshot& process, double now,
                            double unix_now) {
  const auto [at, is_new] = seen_.try_emplace(OwnerOf(process));
  Seen& seen = at->second;
  const bool active = seen.operations != process.operations;
  if (is_new) seen.active_unix_seconds = process.attached_unix_seconds;
  if (active) seen.active_unix_seconds = unix_now;
  seen.operations = process.operations;
  process.active_unix_seconds = seen.active_unix_seconds;
  process.command = CommandOf(proc_root_, static_cast<uint32_t>(process.pid));
  if (process.state == ProcessState::kReaping) return;
  const ThreadState state =
      StateOf(process, static_cast<uint32_t>(process.pid));
  const bool stopped = state == ThreadState::kStopped ||
                       (state == ThreadState::kHalted && !active &&
                        IsFrozen(proc_root_, sys_root_, process.pid));
  if (!stopped) {
    seen.stopped_since = 0;
    return;
  }
  if (seen.stopped_since == 0) seen.stopped_since = now;
  process.state = ProcessState::kStopped;
  process.stopped_seconds = now - seen.stopped_since;
}

void ProcessMonitor::LookAtHolder(const LockHolder& holder,
                                  ProcessSnapshot& process, double now) {
  const auto [at, is_new] =
      holds_.try_emplace({holder.lock, holder.where, holder.owner});
  Hold& hold = at->second;
  hold.process = absl::StrCat(process.slot, "-", process.generation);
  hold.pid = process.pid;
  bool stopped = process.state == ProcessState::kStopped;
  if (!stopped && holder.tid != 0) {
    const ThreadState state = StateOf(process, holder.tid);
    stopped = state == ThreadState::kStopped ||
              (state == ThreadState::kHalted && !is_new &&
               hold.operations == process.operations);
  }
  if (!stopped) {
    hold.operations = process.operations;
    hold.stopped_since = 0;
    return;
  }
  if (hold.stopped_since == 0) hold.stopped_since = now;
  const double seconds = now - hold.stopped_since;
  process.state = ProcessState::kStopped;
  process.stopped_seconds = std::max(process.stopped_seconds, seconds);
  process.holds.push_back({LockKindName(holder.lock), holder.where, seconds});
}

void ProcessMonitor::Report(Snapshot* snapshot, double now) {
  const auto log = [&](const HeldBy& by, const Hold& hold, const char* state) {
    LogEvent(LogLevel::kWarning, "lock-holder-stopped",
             {{"subject", snapshot->subject},
              {"lock", LockText(std::get<0>(by), std::get<1>(by))},
              {"process", hold.process},
              {"pid", absl::StrCat(hold.pid)},
              {"state", state},
              {"seconds", SecondsText(now - hold.stopped_since)}});
  };
  std::map<HeldBy, Hold> stopped;
  for (const auto& [by, hold] : holds_) {
    if (hold.stopped_since == 0) continue;
    stopped[by] = hold;
    snapshot->degraded = true;
    absl::StrAppend(&snapshot->degraded_reason,
                    snapshot->degraded_reason.empty() ? "" : "; ",
                    LockText(std::get<0>(by), std::get<1>(by)),
                    " is held by process ", hold.process, " (pid ", hold.pid,
                    "), stopped for ", SecondsText(now - hold.stopped_since),
                    " s");
    if (reported_.find(by) == reported_.end()) log(by, hold, "began");
  }
  for (const auto& [by, hold] : reported_) {
    if (stopped.find(by) == stopped.end()) log(by, hold, "ended");
  }
  reported_ = std::move(stopped);
}

}  // namespace memtuned
