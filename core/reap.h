// SPDX-License-Identifier: Apache-2.0
// Giving back what the dead left: locks, chunks in hand, blocks, slots. Every
// step may be done twice, by somebody else, as whoever reaps may die as well.
// Floor 2.
#ifndef MEMTUNED_CORE_REAP_H_
#define MEMTUNED_CORE_REAP_H_

#include "core/segment.h"

namespace memtuned {

struct ReapResult {
  uint64_t blocks = 0;
  uint64_t pages = 0;
  // False: a lock's holder is stopped; what is left must be reaped later.
  bool done = false;
};

// Takes over each lock whose holder died, and ends what that one was changing;
// computes limits that are overdue.
// Cost: a load for each lock of the pool and CPU that was ever used.
// Returns: whether no dead holder is left.
bool RecoverDeadOwners(Segment& segment, ThreadContext& thread);

// Gives back what the ended threads of a process had in hand, and their slots.
// `process`: kDaemonProcess for those of a daemon that is gone.
// REQUIRES: RecoverDeadOwners said true after they ended.
bool ReapThreads(Segment& segment, ProcessOwner process, ThreadContext& reaper);

// Recovers, reaps the threads, then frees every block allocated to, or offered
// by, `owner`, then its slot. Walks only sections the process ever took a page
// from, at most 64 blocks per zone-lock hold.
// REQUIRES: the whole process ended: its frames are in nobody's hands.
// Takes: whatever lock is to be recovered; zone locks.
ReapResult ReapProcess(Segment& segment, ProcessOwner owner,
                       ThreadContext& reaper);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_REAP_H_
