// SPDX-License-Identifier: Apache-2.0
// Handing out process and thread slots. Floor 2.
#ifndef MEMTUNED_CORE_SLOT_TABLE_H_
#define MEMTUNED_CORE_SLOT_TABLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/segment.h"

namespace memtuned {

struct ProcessIdentity {
  uint32_t pid = 0, uid = 0, gid = 0;
  uint64_t start_time_ticks = 0;
  uint64_t attached_unix_ns = 0;
};

// This process looks after the pool from now on.
void BecomeDaemon(Segment& segment);

// Gives a process a slot with all nodes allowed and policy local.
// Errors: kResourceExhausted when all slots are taken.
// Thread safety: any thread of the daemon.
absl::StatusOr<ProcessOwner> TakeProcessSlot(Segment& segment,
                                             const ProcessIdentity& identity);
// REQUIRES: no thread of the process runs and its blocks were given back.
void ReleaseProcessSlot(Segment& segment, ProcessOwner owner);
// Frees process slots that a daemon was handing out or taking back when it
// died. For a new one, before it does either.
void FreeUnownedSlots(Segment& segment);
// The slot `owner` names, nullptr when it is no longer that owner's.
ProcessSlot* FindProcessSlot(const Segment& segment, ProcessOwner owner);

// Whether a process whose connection is closed is gone from the pool, though
// it may live: it detached, or called exec. False while a thread of it lives,
// and when it never had one: then its end decides.
bool ProcessLeft(const Segment& segment, ProcessOwner process);

// Gives the running thread a slot, and its life word; fills the context.
// `process`: kDaemonProcess for the daemon's own.
// Returns: false when all are taken: the thread then works without one, past
// the pagesets.
bool TakeThreadSlot(const Segment& segment, ProcessOwner process,
                    ThreadContext* context);
// By the thread itself.
void ReleaseThreadSlot(const Segment& segment, ThreadContext& context);
// Frees the thread slots of a process that is gone, or detaches.
// REQUIRES: what its threads had in hand was given back (core/reap.h).
void ReleaseThreadSlotsOf(const Segment& segment, ProcessOwner process);
void ReleaseDeadThreadSlot(const Segment& segment, ThreadSlot& slot);

// The process says that it left: its blocks may be given back.
// REQUIRES: none of its threads uses the pool any more.
void LeavePool(const Segment& segment, ProcessOwner process);

// Pages the process holds, from its threads' counters.
uint64_t HeldPages(const Segment& segment, ProcessOwner process);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_SLOT_TABLE_H_
