// SPDX-License-Identifier: Apache-2.0
// What a process holds, and may hold: limits, allowances, the peak.
// core/process_limit.h tells how it works.
#include <algorithm>
#include <atomic>

#include "core/allocator.h"
#include "core/allocator_fast.h"
#include "core/mm/owners.h"
#include "core/process_accounts.h"
#include "core/slot_table.h"

namespace memtuned {

// Of the threads but one, and what the ended ones left.
struct Allocator::Bound {
  int64_t held = 0;  // pages
  int64_t may = 0;   // pages they may hold without asking anybody
  int64_t threads = 0;
};

__attribute__((noinline)) Pfn Allocator::AllocateLimited(
    int order, PageType type) noexcept {
  const LastUsed* last = threads_.IfCurrent();
  if (last == nullptr || !ChargeWithin(*last->slot, order, 1)) {
    ThreadContext& thread = threads_.Current();
    thread.patience.Renew();
    if (Charge(order, 1, thread) == 0) {
      Fail(thread.patience.left_ns == 0 ? FailureReason::kBusy
                                        : FailureReason::kProcessLimit);
      return Pfn{kNil};
    }
  }
  const uint64_t page =
      TakeCached</*kCharged=*/true, /*kFlags=*/true>(order, type);
  if (page != kNoPage) return Pfn{static_cast<uint32_t>(page)};
  threads_.Refresh();
  ThreadContext& thread = threads_.Current();
  const Pfn pfn = AllocateFromZones(order, type, thread);
  if (pfn.value == kNil) {
    Uncharge(order, 1, thread.slot);
  } else {
    LookAtPeak(order, thread.slot);
  }
  return pfn;
}

// The addition is visible to whoever took the allowance away and then passed
// the barrier, or the thread sees that it is gone. Without barriers here, both
// sides say so by sequentially consistent operations.
bool Allocator::ChargeWithin(ThreadSlot& slot, int order,
                             size_t blocks) noexcept {
  const int64_t after =
      PagesOf(slot.counts) + static_cast<int64_t>(uint64_t{blocks} << order);
  if (after > Signed(slot.allowance)) return false;
  Shared64& taken = slot.counts[static_cast<size_t>(order)].taken;
  if (mapping_.guard == GuardKind::kBiased) {
    // Not Bump: others decide by it.
    Store(taken, LoadRelaxed(taken) + blocks);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    env::SharedStore();
    taken.fetch_add(blocks);
  }
#ifndef MEMTUNED_NO_SECOND_LOOK  // only a test leaves it out
  env::SharedLoad();
  if (MEMTUNED_UNLIKELY(after > static_cast<int64_t>(slot.allowance.load()))) {
    Uncharge(order, blocks, &slot);
    return false;
  }
#endif
  return true;
}

size_t Allocator::Charge(int order, size_t want,
                         ThreadContext& thread) noexcept {
  ThreadSlot* slot = thread.slot;
  if (slot != nullptr && ChargeWithin(*slot, order, want)) return want;
  LockWait wait;
  if (!slot_.limit_lock.LockWithin(thread.owner, ProbeOf(mapping_),
                                   thread.patience, &wait)) {
    return 0;
  }
  const size_t blocks = ChargeLocked(order, want, slot);
  slot_.limit_lock.Unlock();
  return blocks;
}

size_t Allocator::ChargeLocked(int order, size_t want,
                               ThreadSlot* slot) noexcept {
  size_t blocks = want;
  for (;;) {
    const uint64_t limit = Load(slot_.limit_pages);
    blocks = want;
    if (limit == 0) break;
    blocks = RaiseAllowance(order, want, static_cast<int64_t>(limit), slot);
    // A new limit is stored before allowances are taken away: it was not there
    // yet, or is seen here.
    if (slot_.limit_pages.load() == limit) break;
  }
  Shared64& taken =
      (slot != nullptr ? slot->counts
                       : slot_.retired)[static_cast<size_t>(order)]
          .taken;
  AtomicBump(taken, uint64_t{blocks});
  return blocks;
}

size_t Allocator::RaiseAllowance(int order, size_t want, int64_t limit,
                                 ThreadSlot* slot) noexcept {
  const int64_t size = int64_t{1} << order;
  const int64_t wanted = static_cast<int64_t>(want) << order;
  const int64_t mine = slot != nullptr ? PagesOf(slot->counts) : 0;
  Bound others = BoundOfOthers(slot);
  if (others.may + mine + wanted > limit && others.may > others.held &&
      others.held + mine + size <= limit) {
    TakeAllowancesOfOthers(slot);
    others = BoundOfOthers(slot);
  }
  const int64_t room = limit - others.may - mine;
  const int64_t blocks = std::clamp<int64_t>(room, 0, wanted) >> order;
  const int64_t held = mine + (blocks << order);
  if (slot != nullptr) {
    // What is left is shared by those who may come for it, so that they need
    // not come for each block. Who holds too much must first give that back.
    const int64_t left = room - (blocks << order);
    const int64_t share = left < 0 ? left : left / (2 * (others.threads + 1));
    Swap(slot->allowance, static_cast<uint64_t>(held + share));
  }
  AtomicMax(slot_.peak_pages,
            static_cast<uint64_t>(std::max<int64_t>(0, others.held + held)));
  return static_cast<size_t>(blocks);
}

// Threads before retired counts: one that ends in between is counted twice,
// not left out.
Allocator::Bound Allocator::BoundOfOthers(
    const ThreadSlot* slot) const noexcept {
  Bound bound;
  for (uint32_t i = 0; i < mapping_.nr_threads; ++i) {
    const ThreadSlot& other = mapping_.threads[i];
    if (&other == slot || LoadRelaxed(other.process) != owner_) continue;
    const int64_t held = PagesOf(other.counts);
    bound.held += held;
    bound.may += std::max(held, Signed(other.allowance));
    ++bound.threads;
  }
  const int64_t retired = PagesOf(slot_.retired);
  bound.held += retired;
  bound.may += retired;
  return bound;
}

void Allocator::TakeAllowancesOfOthers(const ThreadSlot* slot) noexcept {
  for (uint32_t i = 0; i < mapping_.nr_threads; ++i) {
    ThreadSlot& other = mapping_.threads[i];
    if (&other == slot || LoadRelaxed(other.process) != owner_) continue;
    Swap(other.allowance, static_cast<uint64_t>(kNoAllowance));
  }
  if (mapping_.guard == GuardKind::kBiased) env::BarrierOnAllCpus();
}

void Allocator::Uncharge(int order, size_t blocks, ThreadSlot* slot) noexcept {
  const uint64_t less = ~uint64_t{blocks} + 1;
  if (slot != nullptr) {
    Bump(slot->counts[static_cast<size_t>(order)].taken, less);
  } else {
    AtomicBump(slot_.retired[static_cast<size_t>(order)].taken, less);
  }
}

// core/process_accounts.h tells what this is for, and what it misses.
__attribute__((noinline)) void Allocator::NoteMoved(int order,
                                                    ThreadSlot& slot) noexcept {
  const OrderCounts& counts = slot.counts[static_cast<size_t>(order)];
  const auto look = [order](const Shared64& blocks, Shared32& looked) {
    const uint64_t pages = LoadRelaxed(blocks) << order;
    Bump(looked, static_cast<uint32_t>(pages) - LoadRelaxed(looked));
  };
  look(counts.taken, slot.looked_taken);
  look(counts.given, slot.looked_given);
  const auto held = static_cast<uint64_t>(PagesOf(slot.counts));
  const uint64_t moved = held - LoadRelaxed(slot.noted_pages);
  if (moved == 0) return;
  Bump(slot.noted_pages, moved);
  AtomicBump(slot_.noted_pages, moved);
  const int64_t noted = Signed(slot_.noted_pages);
  if (noted < Signed(slot_.look_at_pages)) return;
  const uint64_t pages = HeldPages(segment_, owner_);
  AtomicMax(slot_.peak_pages, pages);
  AtomicMax(slot_.look_at_pages, static_cast<uint64_t>(noted) +
                                     std::max<uint64_t>(kPeakStep, pages / 64));
}

}  // namespace memtuned
