// SPDX-License-Identifier: Apache-2.0
// What a test of crashes asks of the core once a process died.
#ifndef MEMTUNED_TESTS_SUPPORT_CRASH_RECOVERY_H_
#define MEMTUNED_TESTS_SUPPORT_CRASH_RECOVERY_H_

#include "core/reap.h"
#include "core/segment.h"

namespace memtuned {

// As the kernel does when a thread that holds its robust life mutex dies.
template <typename MappingLike>
void MarkThreadDied(const MappingLike& mapping, uint32_t slot) {
  if constexpr (requires { mapping.lives[slot].word; }) {
    mapping.lives[slot].word.fetch_or(0x40000000u);
  }
}

template <typename Context>
void Reap(Segment& segment, ProcessOwner owner, Context& thread) {
  if constexpr (requires { ReapProcess(segment, owner, thread); }) {
    ReapProcess(segment, owner, thread);
  } else {
    ReapProcess(segment, owner, thread.owner);
  }
}

template <typename SegmentLike>
void RecoverLocks(SegmentLike& segment, ThreadContext& thread) {
  if constexpr (requires { RecoverDeadOwners(segment, thread); }) {
    RecoverDeadOwners(segment, thread);
  }
}

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_SUPPORT_CRASH_RECOVERY_H_
