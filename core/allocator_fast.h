// SPDX-License-Identifier: Apache-2.0
// The fast paths of the front door, inline: what an allocation and a free do
// when the CPU's pageset has a block, or room for one. Nothing is looked at
// twice, what follows from thread and CPU is in LastUsed, and no call stands
// before the tail: all fits into the registers that a function need not save,
// and whatever is rare (a purgeable block, another thread's block, a
// section's first block) starts over out of line. That is worth a third of the
// time of a pair, measured (Zen 3). Floor 2.
#ifndef MEMTUNED_CORE_ALLOCATOR_FAST_H_
#define MEMTUNED_CORE_ALLOCATOR_FAST_H_

#include "core/allocator.h"
#include "core/mm/pageset.h"

namespace memtuned {

inline uint64_t Allocator::TakeFast(int order, PageType type) noexcept {
  return TakeCached</*kCharged=*/false, /*kFlags=*/false>(order, type);
}

template <bool kCharged, bool kFlags>
inline uint64_t Allocator::TakeCached(int order, PageType type) noexcept {
  LastUsed* last = threads_.IfCurrent();
  if (MEMTUNED_UNLIKELY(last == nullptr ||
                        static_cast<unsigned>(order) > kCostlyOrder)) {
    return kNoPage;
  }
  const MemsCookie cookie = ReadMemsAllowedBegin(slot_.mems);
  if (MEMTUNED_UNLIKELY((cookie & (kMemsRestricted | kMemsLimited)) != 0) &&
      ((!kCharged && (cookie & kMemsLimited) != 0) ||
       !AllowsLocally(slot_.mems, cookie, last->node))) {
    return kNoPage;
  }
  PagesetShared& pageset = *last->pageset;
  if (MEMTUNED_UNLIKELY(!last->TryLock(pageset))) return kNoPage;
  const int list = ListOf(order, type);
  const uint64_t top = LoadRelaxed(pageset.top[static_cast<unsigned>(list)]);
  if (MEMTUNED_UNLIKELY(TopCount(top) == 0)) {
    pageset.guard.Unlock();
    return kNoPage;
  }
  const TopBlock block = ReadTop(mapping_, top);
  // Flagged before the word says allocated: a block that is not found could
  // not be given back.
  const uint64_t page = block.pfn.value;
  const auto section = static_cast<uint32_t>(page >> kSectionShift);
  if (MEMTUNED_UNLIKELY(section != last->section)) {
    if ((LoadRelaxed(sections_[section / 64]) >> (section % 64) & 1) == 0) {
      if (!kFlags) {
        pageset.guard.Unlock();
        return kNoPage;
      }
      mapping_.FlagSection(owner_, block.pfn);
    }
    last->section = section;
  }
  PopTop(mapping_, pageset, list, order, block, last->mine, last->owner);
  Bump(pageset.allocations[static_cast<unsigned>(order)]);
  pageset.free_count >>= 1;
  pageset.guard.Unlock();
  env::Charge(env::Cost::kPagesetOperation);
  if (!kCharged) Bump(last->slot->counts[static_cast<unsigned>(order)].taken);
  return page;
}

inline bool Allocator::ReadOwn(const LastUsed& last, uint64_t page, int order,
                               OwnBlock* block) const noexcept {
  if (MEMTUNED_UNLIKELY(page - last.first_pfn >= last.nr_pages)) return false;
  block->pfn = Pfn{static_cast<uint32_t>(page)};
  block->page = &mapping_.memmap[page];
  block->word = PageWord(LoadRelaxed(block->page->word));
  // A word that says allocated is a block's head: alignment is implied.
  return MEMTUNED_LIKELY(block->word.IsOrdinary(
      last.mine | PageWord::State(PageKind::kUntouched, order, 0)));
}

template <bool kStore>
inline Allocator::Push Allocator::PushOwn(const LastUsed& last,
                                          PagesetShared& pageset, int order,
                                          const OwnBlock& block) noexcept {
  const int list = ListOf(order, PageType::kOrdinary);
  const uint64_t top = LoadRelaxed(pageset.top[static_cast<unsigned>(list)]);
  if (MEMTUNED_UNLIKELY(!TopHasRoom(top) ||
                        LoadRelaxed(last.zone->control) != pageset.seen)) {
    return Push::kCold;
  }
  if (MEMTUNED_UNLIKELY(!PushTop<kStore>(mapping_, pageset, list, top,
                                         block.pfn, *block.page, block.word))) {
    return Push::kRefused;
  }
  const uint32_t count = BumpTo(pageset.pages, 1u << order);
  Bump(pageset.frees[static_cast<unsigned>(order)]);
  Bump(last.slot->counts[static_cast<unsigned>(order)].given);
  if (MEMTUNED_UNLIKELY(
          count >= LoadRelaxed(pageset.high) ||
          (order != 0 && pageset.free_count >= pageset.free_high_threshold))) {
    return Push::kToCommit;
  }
  NoteFree(pageset, count, pageset.batch, pageset.free_high_threshold,
           pageset.free_count_cap, pageset.consecutive_only, order);
  return Push::kDone;
}

inline FreeResult Allocator::FreeFast(uint64_t page, int order) noexcept {
  LastUsed* last = threads_.IfCurrent();
  OwnBlock block;
  if (MEMTUNED_UNLIKELY(last == nullptr ||
                        static_cast<unsigned>(order) > kCostlyOrder ||
                        !ReadOwn(*last, page, order, &block))) {
    return FreeCold(page, order);
  }
  PagesetShared& pageset = *last->pageset;
  if (MEMTUNED_UNLIKELY(!last->TryLock(pageset))) return FreeCold(page, order);
  if (MEMTUNED_UNLIKELY(LoadRelaxed(block.page->next) != last->owner ||
                        Load(slot_.gave_others_blocks) != 0)) {
    return FreeBySwap(pageset, page, order);
  }
  const Push push = PushOwn<true>(*last, pageset, order, block);
  if (MEMTUNED_UNLIKELY(push == Push::kToCommit)) {
    return CommitFree(pageset, order);
  }
  pageset.guard.Unlock();
  if (MEMTUNED_UNLIKELY(push == Push::kCold)) return FreeCold(page, order);
  env::Charge(env::Cost::kPagesetOperation);
  return FreeResult::kFreed;
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_ALLOCATOR_FAST_H_
