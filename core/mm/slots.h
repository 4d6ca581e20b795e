// SPDX-License-Identifier: Apache-2.0
// Who is attached: a slot a process, a slot a thread. Blocks carry their
// process slot, locks their thread slot, so a dead owner can be found from
// either. Floor 1.
#ifndef MEMTUNED_CORE_MM_SLOTS_H_
#define MEMTUNED_CORE_MM_SLOTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/life.h"
#include "core/base/shm.h"
#include "core/base/shm_lock.h"
#include "core/mm/cpuset.h"
#include "core/mm/page.h"

namespace memtuned {

// Owner ids are slot | generation << bits, generation never 0.
inline constexpr int kProcessSlotBits = 10;
inline constexpr uint32_t kMaxProcesses = 1u << kProcessSlotBits;
inline constexpr int kThreadSlotBits = 12;
inline constexpr uint32_t kMaxThreads = 1u << kThreadSlotBits;
inline constexpr uint32_t kMaxSections = 1u << 17;  // 16 TiB
// The last number of either is no slot. As a thread's: one without a slot.
inline constexpr uint32_t kSlotless = kMaxThreads - 1;
// Lock owner of whoever creates a segment, before slots are handed out.
inline constexpr ThreadOwner kCreatorOwner = ~0u;
// ThreadSlot::process of the daemon's own threads.
inline constexpr ProcessOwner kDaemonProcess = ~0u;

constexpr ProcessOwner MakeProcessOwner(uint32_t slot, uint32_t generation) {
  return generation << kProcessSlotBits | slot;
}
constexpr uint32_t ProcessSlotOf(ProcessOwner owner) {
  return owner & (kMaxProcesses - 1);
}
constexpr uint32_t ThreadSlotOf(ThreadOwner owner) {
  return owner & (kMaxThreads - 1);
}

enum class SlotState : uint32_t {
  kFree = 0,
  kAttaching = 1,  // the daemon is filling it
  kAttached = 2,
  kReaping = 3,   // the process is gone; its blocks are being given back
  kDetached = 4,  // it left by itself: its blocks may be given back
};

// The daemon that looks after the pool now.
struct DaemonIdentity {
  Shared32 pid;
  Shared64 start_time_ticks;
};

// Blocks taken and given back of each order, since attaching.
struct OrderCounts {
  Shared64 taken, given;
};
using BlockCounts = std::array<OrderCounts, kNumOrders>;
// Pages held: taken minus given, below 0 for who gives what others took. What
// is given meanwhile may be left out, what is taken is not.
inline int64_t PagesOf(const BlockCounts& counts) {
  uint64_t given = 0, taken = 0;
  for (size_t order = 0; order < counts.size(); ++order) {
    given += counts[order].given.load(std::memory_order_acquire) << order;
  }
  for (size_t order = 0; order < counts.size(); ++order) {
    taken += counts[order].taken.load(std::memory_order_acquire) << order;
  }
  return static_cast<int64_t>(taken - given);
}

// One attached process. Filled by the daemon at attach.
struct alignas(64) ProcessSlot {
  Shared32 state;  // SlotState
  Shared32 owner;  // ProcessOwner in force; changes at each attach
  Shared32 generation;
  Shared32 pid;
  Shared32 uid;
  Shared32 gid;
  Shared64 start_time_ticks;  // /proc/PID/stat, tells reused pids apart
  Shared64 attached_unix_ns;
  // 0 while each thread gave only blocks back that it had taken itself. Then
  // nobody else can be giving the same block back, and a store does for a
  // compare and swap. Read under a pageset's guard: who sets it waits for
  // those that may have read 0 (Allocator::NoteOthersBlock). A byte: GCC would
  // keep a 32-bit zero in a register, to return it as the free's result.
  std::atomic<uint8_t> gave_others_blocks;
  // core/process_limit.h. `limit_override` is the owner it is for << 32 |
  // pages; `limit_pages` is what is in force. 0 pages: none.
  Shared64 limit_override;
  Shared64 limit_pages;

  // Of threads that ended or have no slot, and what others adopted.
  alignas(64) BlockCounts retired;
  // core/process_accounts.h
  Shared64 peak_pages;
  Shared64 noted_pages;  // of all threads; signed
  Shared64 look_at_pages;
  // Held by a thread of the process that raises its allowance.
  ShmLock<LockRank::kLimit> limit_lock;
  alignas(64) MemsAllowed mems;
};

// One thread of an attached process, taken on its first operation. Its life
// word is in Mapping::lives.
struct alignas(64) ThreadSlot {
  Shared32 owner;  // ThreadOwner in force, 0: none yet, or free
  Shared32 generation;
  Shared32 process;  // ProcessOwner, 0: free; taken first, cleared last
  Shared32 tid;
  // The one chunk that this thread is moving: kPendingChunk | chunk, 0: none.
  // Set before the chunk leaves its place, cleared when it is in another one.
  Shared64 pending;
  // Signed. What the thread may come to hold: core/process_limit.h.
  Shared64 allowance;
  // Signed. Of what it holds, what is in ProcessSlot::noted_pages; and what was
  // taken and given, in pages of one order, when it was looked at.
  Shared64 noted_pages;
  Shared32 looked_taken, looked_given;
  // Written by the thread alone, without an atomic operation.
  BlockCounts counts;
};
static_assert(sizeof(ThreadSlot) == 256);
// What operations of order 0 write lies in one line.
static_assert(offsetof(ThreadSlot, counts) + sizeof(OrderCounts) <= 64);
inline int64_t Signed(const Shared64& number) {
  return static_cast<int64_t>(LoadRelaxed(number));
}
// How often a thread says how much it holds, in pages it moved:
// core/process_accounts.h.
inline constexpr uint32_t kPeakStep = 256;
// Less than any thread holds.
inline constexpr int64_t kNoAllowance = INT64_MIN;
inline constexpr uint64_t kPendingChunk = 1ull << 62;
constexpr uint32_t PendingChunk(uint64_t pending) {
  return (pending & kPendingChunk) != 0 ? static_cast<uint32_t>(pending) : 0;
}

// What an operation needs to know about the thread that runs it. Lives in the
// memory of the process, never in the segment.
struct ThreadContext {
  ThreadOwner owner = 0;
  ProcessOwner process = 0;
  ThreadSlot* slot = nullptr;
  uint32_t interleave_next = 0;
  Patience patience;  // of the operation under way
  Life life;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_SLOTS_H_
