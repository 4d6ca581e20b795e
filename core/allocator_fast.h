// SPDX-License-Identifier: Apache-2.0
// The fast paths of the front door, inline: what an allocation and a free do
// when the CPU's pageset has a block, or room for one. Nothing is looked at
// twice, no call stands before the tail (no registers are saved then), and
// what follows from thread and CPU is in LastUsed: together a quarter of the
// time of a pair, measured. Floor 2.
#ifndef MEMTUNED_CORE_ALLOCATOR_FAST_H_
#define MEMTUNED_CORE_ALLOCATOR_FAST_H_

#include "core/allocator.h"
#include "core/mm/pageset.h"

namespace memtuned {

inline uint64_t Allocator::TakeFast(int order, PageType type) noexcept {
  return TakeCached<false>(order, type);
}

template <bool kCharged>
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
  const uint32_t section = block.pfn.value >> kSectionShift;
  if (MEMTUNED_UNLIKELY(section != last->section)) {
    mapping_.FlagSection(owner_, block.pfn);
    last->section = section;
  }
  const Pfn pfn = PopTop(pageset, list, order, block, last->mine, last->owner);
  Bump(pageset.allocations[static_cast<unsigned>(order)]);
  pageset.free_count >>= 1;
  pageset.guard.Unlock();
  env::Charge(env::Cost::kPagesetOperation);
  if (!kCharged) Bump(last->slot->counts[static_cast<unsigned>(order)].taken);
  return pfn.value;
}

inline bool Allocator::ReadOwn(const LastUsed& last, uint64_t page, int order,
                               OwnBlock* block) const noexcept {
  if (MEMTUNED_UNLIKELY(page - last.first_pfn >= last.nr_pages)) return false;
  block->pfn = Pfn{static_cast<uint32_t>(page)};
  block->page = &mapping_.memmap[page];
  block->word = PageWord(LoadRelaxed(block->page->word));
  // A word that says allocated is a block's head: alignment is implied.
  return MEMTUNED_LIKELY(block->word.HasState(
      last.mine | PageWord::State(PageKind::kUntouched, order, 0)));
}

inline Allocator::Push Allocator::PushOwn(const LastUsed& last,
                                          PagesetShared& pageset, int order,
                                          const OwnBlock& block) noexcept {
  const int list = ListOf(order, block.word.type());
  const uint64_t top = LoadRelaxed(pageset.top[static_cast<unsigned>(list)]);
  const bool store = Load(slot_.gave_others_blocks) == 0;
  if (MEMTUNED_UNLIKELY(
          !TopHasRoom(top) || LoadRelaxed(last.zone->control) != pageset.seen ||
          (store && LoadRelaxed(block.page->next) != last.owner))) {
    return Push::kCold;
  }
  if (MEMTUNED_UNLIKELY(!PushTop(mapping_, pageset, list, top, block.pfn,
                                 block.word, store))) {
    return Push::kRefused;
  }
  Bump(pageset.pages, 1u << order);
  const uint32_t count = LoadRelaxed(pageset.pages);
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
  const Push push = PushOwn(*last, pageset, order, block);
  if (MEMTUNED_UNLIKELY(push == Push::kToCommit)) {
    return CommitFree(pageset, ListOf(order, block.word.type()), order);
  }
  pageset.guard.Unlock();
  if (MEMTUNED_UNLIKELY(push == Push::kCold)) return FreeCold(page, order);
  if (MEMTUNED_UNLIKELY(push == Push::kRefused)) {
    return Refuse(FreeResult::kNotAllocated);
  }
  env::Charge(env::Cost::kPagesetOperation);
  return FreeResult::kFreed;
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_ALLOCATOR_FAST_H_
