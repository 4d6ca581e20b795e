// SPDX-License-Identifier: Apache-2.0
// What is known of a pool's processes only by looking at them again and again:
// when one was active last, since when it is stopped, and which locks of the
// pool a stopped one holds, so that others get "busy". Floor 2b.
//
// A process counts as stopped while its main thread is stopped by a signal or
// by who traces it, while its control group is frozen as far as the daemon can
// see, and while one of its threads holds a lock and is stopped, or sleeps
// with it from one look to the next. All times are from the first look that
// saw it, so they are short by at most the time between two looks.
#ifndef MEMTUNED_DAEMON_POOL_PROCESS_MONITOR_H_
#define MEMTUNED_DAEMON_POOL_PROCESS_MONITOR_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/lock_holders.h"
#include "core/segment.h"
#include "core/stats.h"

namespace memtuned {

// Thread safety: one thread at a time.
class ProcessMonitor {
 public:
  // REQUIRES: `segment` outlives this.
  ProcessMonitor(const Segment* segment, std::string proc_root,
                 std::string sys_root)
      : segment_(segment),
        proc_root_(std::move(proc_root)),
        sys_root_(std::move(sys_root)) {}

  // Fills what is the daemon's in the snapshot's processes, and degraded and
  // its reason when one of them is in everybody's way. Logs
  // lock-holder-stopped when that begins and when it ends.
  // Cost: some 50 us a process, most of it for those that do nothing.
  void Look(Snapshot* snapshot);

 private:
  struct Seen {
    uint64_t operations = 0;
    double active_unix_seconds = 0;
    double stopped_since = 0;  // monotonic seconds, 0: it runs
  };
  // A lock in the hands of one thread.
  using HeldBy = std::tuple<LockKind, std::string, ThreadOwner>;
  struct Hold {
    uint64_t operations = 0;   // of the process, when last seen running
    double stopped_since = 0;  // monotonic seconds, 0: not known to be
    std::string process;       // "3-17"
    int pid = 0;
  };

  void LookAt(ProcessSnapshot& process, double now, double unix_now);
  void LookAtHolder(const LockHolder& holder, ProcessSnapshot& process,
                    double now);
  // Of the holds of stopped processes: says so in the snapshot and the log.
  void Report(Snapshot* snapshot, double now);

  const Segment* const segment_;
  const std::string proc_root_, sys_root_;
  std::map<ProcessOwner, Seen> seen_;
  std::map<HeldBy, Hold> holds_;
  std::map<HeldBy, Hold> reported_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_PROCESS_MONITOR_H_
