// SPDX-License-Identifier: Apache-2.0
// The front door: allocate and free blocks of a pool, at function-call speed,
// from any thread of any attached process. No RPC, no system call, no memory
// of its own on the fast path. Floor 2; core/README.md walks through it.
#ifndef MEMTUNED_CORE_ALLOCATOR_H_
#define MEMTUNED_CORE_ALLOCATOR_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/base/node_mask.h"
#include "core/segment.h"
#include "core/thread_context.h"

namespace memtuned {

// A process's way into a pool.
// Thread safety: any thread. Threads take their slot on first use.
class Allocator {
 public:
  // REQUIRES: `segment` outlives this; `owner` is the process slot that the
  // daemon handed out (core/slot_table.h).
  Allocator(Segment& segment, ProcessOwner owner);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // A block of 2^order pages, order 0..10, naturally aligned.
  // Takes: the pageset guard by trylock; on refill the zone lock.
  // Returns: Pfn{kNil} when every allowed zone is at its min watermark, also
  // after draining what other CPUs hold; when this process would hold more than
  // it may; or when a process that holds a lock is stopped, after 20 ms. Never
  // fails because the allowed nodes changed meanwhile. noexcept.
  // Cost: about 6 ns when the pageset has a block.
  Pfn Allocate(int order, PageType type = PageType::kOrdinary) noexcept;

  // Gives a block back. Refuses, counts and changes nothing when it is not
  // this process's block of that order.
  FreeResult Free(Pfn pfn, int order) noexcept;

  // The parts of Allocate and Free that need nothing but the pageset, for
  // callers that include core/allocator_fast.h. Pages are 64-bit
  // numbers here: TakeFast returns kNoPage when there is more to do (call
  // Allocate), FreeFast takes any.
  static constexpr uint64_t kNoPage = ~uint64_t{0};
  __attribute__((always_inline)) inline uint64_t TakeFast(
      int order, PageType type) noexcept;
  __attribute__((always_inline)) inline FreeResult FreeFast(uint64_t page,
                                                            int order) noexcept;

  // Fills `out` with blocks under as few guard acquisitions as possible.
  // Returns: how many; fewer only when memory is short.
  size_t AllocateBulk(int order, std::span<Pfn> out) noexcept;
  // As many calls of Free, under as few guard acquisitions as possible.
  // Returns: how many were freed; refused ones are counted and skipped.
  size_t FreeBulk(int order, std::span<const Pfn> blocks) noexcept;

  // Marks a block as on offer to `target` (0: to any process of the pool).
  // Until adopted it stays this process's and dies with it.
  // Returns: kFreed when done; else why not, and nothing changed.
  FreeResult Offer(Pfn pfn, int order, ProcessOwner target = 0) noexcept;
  // Takes an offer back.
  FreeResult Revoke(Pfn pfn, int order) noexcept;
  // Takes ownership of a block offered to this process or to any. A process
  // that dies in here may leave the offerer counting the block (HeldPages): who
  // has which block is in the words, counts are for people and limits.
  // Returns: also kProcessLimit, and nothing changed.
  FreeResult Adopt(Pfn pfn, int order) noexcept;
  // Both at once. The process's limit does not matter. kBusy: adopted.
  FreeResult FreeAdopted(Pfn pfn, int order) noexcept;

  // Tags a block with the caller's 8-bit label ("who holds my pages").
  FreeResult SetLabel(Pfn pfn, int order, uint8_t label) noexcept;

  // Memory policy of this process: later allocations follow it.
  // Errors: kInvalidArgument when `nodes` names no node with memory of the
  // pool that this process may use.
  absl::Status SetMemoryPolicy(MemoryPolicy policy, const NodeMask& nodes);

  Segment& segment() { return segment_; }
  ProcessOwner owner() const { return owner_; }

  // True in a forked child: this copy owns nothing. Allocation fails, frees of
  // the parent's blocks are counted no-ops. True also for one who may only read
  // the segment; then nothing is counted either.
  bool detached() const { return !threads_.owned(); }

 private:
  // `kCharged`: it is counted already. `kFlags`: also a block of a section that
  // is not flagged yet.
  template <bool kCharged, bool kFlags>
  __attribute__((always_inline)) inline uint64_t TakeCached(
      int order, PageType type) noexcept;
  Pfn AllocateSlow(int order, PageType type) noexcept;
  Pfn AllocateLimited(int order, PageType type) noexcept;
  // Past what TakeCached can do. Counts a failure, but no success.
  Pfn AllocateFromZones(int order, PageType type,
                        ThreadContext& thread) noexcept;
  struct OwnBlock {
    Pfn pfn;
    Page* page;
    PageWord word{0};
  };
  // Whether the page is the head of this process's ordinary block of that
  // order, in the zone this thread used last.
  __attribute__((always_inline)) inline bool ReadOwn(
      const LastUsed& last, uint64_t page, int order,
      OwnBlock* block) const noexcept;
  enum class Push {
    kDone,
    kToCommit,  // pushed, and the policy has something to decide
    kCold,      // nothing done: FreeCold can
    kRefused,   // nothing done: the word moved
  };
  template <bool kStore>
  __attribute__((always_inline)) inline Push PushOwn(
      const LastUsed& last, PagesetShared& pageset, int order,
      const OwnBlock& block) noexcept REQUIRES(pageset.guard);
  FreeResult FreeCold(uint64_t page, int order) noexcept;
  // FreeFast of a process that gave others' blocks, or is about to.
  FreeResult FreeBySwap(PagesetShared& pageset, uint64_t page,
                        int order) noexcept RELEASE(pageset.guard);
  // Frees blocks off the front under one hold of the guard, each as FreeFast
  // does, up to one that has more to it. Returns: how many.
  size_t FreeRun(int order, std::span<const Pfn> blocks) noexcept;
  FreeResult CommitFree(PagesetShared& pageset, int order) noexcept
      RELEASE(pageset.guard);
  Pfn TryZones(int order, PageType type, ThreadContext& thread,
               const MemsCopy& copy, bool min_mark) noexcept;
  Pfn TakeFromZone(Zone& zone, uint32_t number, int order, PageType type,
                   Mark mark, ThreadContext& thread) noexcept;
  Pfn TakeDirect(Zone& zone, PagesetShared& pageset, int order, PageType type,
                 Mark mark, ThreadContext& thread) noexcept;
  uint32_t ZonelistStart(const MemsCopy& copy, const CpuEntry& cpu,
                         ThreadContext& thread) noexcept;
  // Brings one more section of an allowed zone into being.
  bool AddSection(const MemsCopy& copy, ThreadContext& thread) noexcept;
  // Gets back what the depots and all CPUs' pagesets hold: the last resort,
  // as the pages that others are about to want go with it.
  bool FetchHeld(const MemsCopy& copy, ThreadContext& thread) noexcept;
  FreeResult FreeSlow(Pfn pfn, int order, PageWord word) noexcept;
  FreeResult FreePastZone(Zone& zone, Pfn pfn, int order,
                          PageWord word) noexcept;
  FreeResult CheckFree(Pfn pfn, int order, PageWord* word) const noexcept;
  void NoteOthersBlock(Pfn pfn) noexcept;
  bool StoresWords(ThreadOwner holder) noexcept;
  FreeResult Refuse(FreeResult why) noexcept;
  void Fail(FailureReason why) noexcept;
  FreeResult AdoptBlock(Pfn pfn, int order, bool to_keep) noexcept;

  // Counting what this process holds. A block is counted before it is taken
  // ("charged") when the process has a limit, else after.
  void NoteTaken(int order, ThreadSlot* slot) noexcept;
  void NoteGiven(int order, ThreadSlot* slot) noexcept;
  // After a refill or flush, for the process's peak.
  void LookAtPeak(int order, ThreadSlot* slot) noexcept;
  void NoteMoved(int order, ThreadSlot& slot) noexcept;

  // allocator_limit.cc; core/process_limit.h tells how it works.
  bool limited() const noexcept { return LoadRelaxed(slot_.limit_pages) != 0; }
  bool ChargeWithin(ThreadSlot& slot, int order, size_t blocks) noexcept;
  // Returns: how many of `want` blocks the process may take.
  size_t Charge(int order, size_t want, ThreadContext& thread) noexcept;
  size_t ChargeLocked(int order, size_t want, ThreadSlot* slot) noexcept
      REQUIRES(slot_.limit_lock);
  size_t RaiseAllowance(int order, size_t want, int64_t limit,
                        ThreadSlot* slot) noexcept REQUIRES(slot_.limit_lock);
  void Uncharge(int order, size_t blocks, ThreadSlot* slot) noexcept;
  struct Bound;
  Bound BoundOfOthers(const ThreadSlot* slot) const noexcept;
  void TakeAllowancesOfOthers(const ThreadSlot* slot) noexcept;
  void CountNuma(Zone& taken, Zone& preferred, const CpuEntry& cpu,
                 bool interleaved, int order) noexcept;

  Segment& segment_;
  const Mapping mapping_;
  const ProcessOwner owner_;
  ProcessSlot& slot_;
  const Shared64* const sections_;  // that are flagged for this process
  ThreadRegistry threads_;
};

inline void Allocator::NoteTaken(int order, ThreadSlot* slot) noexcept {
  if (MEMTUNED_LIKELY(slot != nullptr)) {
    Bump(slot->counts[static_cast<size_t>(order)].taken);
  } else {
    AtomicBump(slot_.retired[static_cast<size_t>(order)].taken);
  }
}

inline void Allocator::NoteGiven(int order, ThreadSlot* slot) noexcept {
  if (MEMTUNED_LIKELY(slot != nullptr)) {
    Bump(slot->counts[static_cast<size_t>(order)].given);
  } else {
    AtomicBump(slot_.retired[static_cast<size_t>(order)].given);
  }
}

inline void Allocator::LookAtPeak(int order, ThreadSlot* slot) noexcept {
  if (slot == nullptr) return;
  const OrderCounts& counts = slot->counts[static_cast<size_t>(order)];
  const auto moved = [order](const Shared64& blocks, const Shared32& looked) {
    const uint64_t pages = LoadRelaxed(blocks) << order;
    return static_cast<uint32_t>(pages) - LoadRelaxed(looked);
  };
  if (MEMTUNED_UNLIKELY(moved(counts.taken, slot->looked_taken) >= kPeakStep ||
                        moved(counts.given, slot->looked_given) >= kPeakStep)) {
    NoteMoved(order, *slot);
  }
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_ALLOCATOR_H_
