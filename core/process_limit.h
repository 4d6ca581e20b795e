// SPDX-License-Identifier: Apache-2.0
// How many pages a process may hold: the pool's tunable process.max_bytes, or
// a limit of its own. Floor 2.
//
// A process without a limit pays nothing. With one, each thread has an
// allowance in its slot: up to where what it holds may grow. The larger of the
// two, added up over the threads of a process, never is above the limit.
//
//   within it      the thread counts the block, then looks at the allowance
//                  again: somebody may have taken it away; then takes the block
//   beyond it      under limit_lock the thread takes from what is left for
//                  all; if the others have it, their allowances are taken away
//                  first: stored, then a barrier on all CPUs, then their
//                  counts are read
//
// Cost within it: some 5 ns; beyond it a pass over the thread slots, and close
// to the limit the barrier, which interrupts the CPUs.
//
// So a process never holds more than its limit, and fails only when it holds
// it, or is about to. Two exceptions: an allocation that had begun when the
// limit was set may still succeed; FreeAdopted holds the block it frees. A
// limit below what the process holds takes nothing away: until it holds less,
// every allocation fails. An offered block is its offerer's until adopted.
//
// The process's own library keeps to the limit: a program that writes over the
// segment can go past it, as it can past everything else.
#ifndef MEMTUNED_CORE_PROCESS_LIMIT_H_
#define MEMTUNED_CORE_PROCESS_LIMIT_H_

#include <cstdint>
#include <optional>

#include "core/segment.h"

namespace memtuned {

// What applies to the process in a slot now, in pages; 0: no limit.
uint64_t LimitOf(const Segment& segment, const ProcessSlot& slot);
// Whether it is the process's own, not the pool's.
bool HasOwnLimit(const ProcessSlot& slot);

// Puts LimitOf() in force. After a change of the owner, of its own limit or of
// the tunable. Thread safety: any thread of the daemon.
void PublishLimit(const Segment& segment, ProcessSlot& slot);
void PublishLimits(const Segment& segment);

// Gives a process a limit of its own: pages, 0 for none whatever the pool's
// is; nothing: the pool's. In force when this returns.
// REQUIRES: pages below 2^32.
void SetOwnLimit(const Segment& segment, ProcessSlot& slot, ProcessOwner owner,
                 std::optional<uint64_t> pages);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_PROCESS_LIMIT_H_
