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

// Gives a process a slot with all nodes allowed and policy local.
// Errors: kResourceExhausted when all slots are taken.
// Thread safety: any thread of the daemon.
absl::StatusOr<ProcessOwner> TakeProcessSlot(Segment& segment,
                                             const ProcessIdentity& identity);
// REQUIRES: no thread of the process runs and its blocks were given back.
void ReleaseProcessSlot(Segment& segment, ProcessOwner owner);
// The slot `owner` names, nullptr when it is no longer that owner's.
ProcessSlot* FindProcessSlot(const Segment& segment, ProcessOwner owner);

// Gives a thread a slot; fills the context. Returns: false when all are
// taken: the thread then works without one, at the price of recovery.
bool TakeThreadSlot(const Segment& segment, ProcessOwner process,
                    ThreadContext* context);
void ReleaseThreadSlot(const Segment& segment, ThreadContext& context);
// Frees the thread slots of a process that is gone.
void ReleaseThreadSlotsOf(const Segment& segment, ProcessOwner process);

// Pages the process holds, from its threads' counters.
uint64_t HeldPages(const Segment& segment, ProcessOwner process);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_SLOT_TABLE_H_
