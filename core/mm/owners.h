// SPDX-License-Identifier: Apache-2.0
// Whether the owner of a lock can still let go of it, and what threads had in
// hand when they ended. Floor 1.
#ifndef MEMTUNED_CORE_MM_OWNERS_H_
#define MEMTUNED_CORE_MM_OWNERS_H_

#include <cstdint>

#include "core/mm/mapping.h"

namespace memtuned {

// Locks by whose takeovers are counted: SegmentHeader::lock_takeovers.
enum class LockKind : uint32_t { kZone, kLru, kPageset, kTuning, kDepot };
inline constexpr int kNumLockKinds = 5;
const char* LockKindName(LockKind kind);

// A thread without a slot: its process's number and part of the generation
// stand in for it. Recognised as dead once the process is being reaped.
constexpr ThreadOwner SlotlessOwner(ProcessOwner process) {
  return (process >> kProcessSlotBits) << 22 |
         ProcessSlotOf(process) << kThreadSlotBits | kSlotless;
}

// Whether the thread ended, or never was one: what comes out of the segment
// may be anything. False for nobody (0), and for those that create a segment
// until a daemon looks after it.
// Cost: two loads of shared memory.
bool OwnerDied(const Mapping& mapping, ThreadOwner owner);
// The process of an owner that is alive or dead, 0 when it cannot be told.
ProcessOwner ProcessOf(const Mapping& mapping, ThreadOwner owner);

// Whether the thread runs, waits for a CPU, or cannot be seen from here.
// Cost: it reads files of /proc.
bool OwnerMayRun(const Mapping& mapping, ThreadOwner owner);

inline DeathProbe ProbeOf(const Mapping& mapping) {
  return {[](const void* m, ThreadOwner holder, ThreadOwner waiter) {
            // Nobody waits for himself: a word that says so was written by
            // somebody else. Only threads without a slot share an owner.
            return holder == waiter
                       ? ThreadSlotOf(holder) != kSlotless
                       : OwnerDied(*static_cast<const Mapping*>(m), holder);
          },
          [](const void* m, ThreadOwner owner) {
            return OwnerMayRun(*static_cast<const Mapping*>(m), owner);
          },
          &mapping};
}

void CountTakeover(const Mapping& mapping, LockKind kind);

// Calls visit(slot, chunk) for each thread slot that names a chunk in doubt.
// Whoever holds a lock that came from a dead owner looks at all: of a chain of
// deaths only the last one is the lock's owner. Cost: a load a slot.
template <typename Visit>
void ForEachPending(const Mapping& mapping, const Visit& visit) {
  for (uint32_t i = 0; i < mapping.nr_threads; ++i) {
    ThreadSlot& slot = mapping.threads[i];
    const uint32_t chunk = PendingChunk(LoadRelaxed(slot.pending));
    if (chunk != kNoChunk && chunk < mapping.nr_chunks) visit(slot, chunk);
  }
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_OWNERS_H_
