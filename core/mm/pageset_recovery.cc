// SPDX-License-Identifier: Apache-2.0
// A pageset whose holder died. Each chunk's word says where it is; top, spare
// and deque are put right by them. At the moment of the death each chunk was in
// a place or picked up, or both; a block on top of a loaded chunk may be
// counted and not be there. Every step can be done twice.
#include <algorithm>

#include "core/mm/owners.h"
#include "core/mm/pageset.h"

namespace memtuned {

bool Pageset::LockFromAnywhere() {
  LockWait wait;
  if (!p_->guard.LockFromAnywhere(thread_->owner, mapping_->guard,
                                  ProbeOf(*mapping_), thread_->patience,
                                  &wait)) {
    return false;
  }
  if (MEMTUNED_UNLIKELY(wait.taken_over)) {
    CountTakeover(*mapping_, LockKind::kPageset);
#ifndef MEMTUNED_MUTANT_NO_PAGESET_REBUILD  // only a test leaves it out
    EndChangesLocked();
#endif
  }
  return true;
}

__attribute__((noinline)) bool Pageset::Recover() {
  if (mapping_->guard == GuardKind::kClosed) return false;
  const ThreadOwner holder = p_->guard.HolderNow();
  if (holder == 0 || !OwnerDied(*mapping_, holder)) return false;
  if (!LockFromAnywhere()) return false;
  p_->guard.UnlockFromAnywhere(mapping_->guard);
  return true;
}

bool Pageset::SaysHere(uint32_t chunk, int list) const {
  return IsChunk(chunk) &&
         LoadRelaxed(mapping_->chunks[chunk].word) ==
             ChunkWord(ChunkPlace::kPageset, list, mapping_->NumberOf(*p_));
}

void Pageset::EndChangesLocked() {
  MarkUsed();
  uint32_t pages = 0;
  for (int list = 0; list < kNumLists; ++list) {
    pages += RecoverListLocked(list) << ListOrder(list);
  }
  Store(p_->pages, pages);
  AdoptPendingLocked();
}

// Returns: blocks.
uint32_t Pageset::RecoverListLocked(int list) {
  const auto l = static_cast<size_t>(list);
  PagesetList& rest = p_->lists[l];
  const uint64_t top = LoadRelaxed(p_->top[l]);
  const uint32_t loaded = TopChunk(top);
  uint32_t count = std::min(TopCount(top), kChunkBlocks);
  if (SaysHere(loaded, list)) {
    const uint64_t here =
        PageWord::State(PageKind::kCached, ListOrder(list), loaded);
    for (; count > 0; --count) {
      const uint32_t pfn =
          LoadRelaxed(mapping_->chunks[loaded].items[count - 1]);
      if (pfn < mapping_->nr_pages &&
          PageWord(LoadRelaxed(mapping_->memmap[pfn].word)).HasState(here)) {
        break;
      }
    }
    if (top != TopWord(loaded, count))
      Store(p_->top[l], TopWord(loaded, count));
  } else {
    count = 0;
    Store(p_->top[l], kNoTop);
  }
  const uint32_t spare = LoadRelaxed(rest.spare);
  if (spare == loaded || !SaysHere(spare, list)) Store(rest.spare, kNoChunk);
  count += RecoverDequeLocked(list);
  const uint32_t left = LoadRelaxed(rest.spare);
  if (left != kNoChunk) {
    count += std::min(LoadRelaxed(mapping_->chunks[left].count), kChunkBlocks);
  }
  return count;
}

// From the hot end on each link is stored before the chunk is, and taken out
// before it goes: so that way all of them are found.
uint32_t Pageset::RecoverDequeLocked(int list) {
  PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  uint32_t blocks = 0;
  uint32_t found = 0;
  uint32_t previous = kNoChunk;
  uint32_t number = LoadRelaxed(rest.hot);
  while (SaysHere(number, list) && found < mapping_->nr_chunks) {
    Chunk& chunk = mapping_->chunks[number];
    if (number == LoadRelaxed(rest.spare)) Store(rest.spare, kNoChunk);
    Store(chunk.prev, previous);
    blocks += std::min(LoadRelaxed(chunk.count), kChunkBlocks);
    ++found;
    previous = number;
    number = LoadRelaxed(chunk.next);
  }
  if (previous == kNoChunk) {
    Store(rest.hot, kNoChunk);
  } else {
    Store(mapping_->chunks[previous].next, kNoChunk);
  }
  Store(rest.cold, previous);
  Store(rest.nr_deque, found);
  return blocks;
}

// Chunks that say they are here, and may be in no place.
void Pageset::AdoptPendingLocked() {
  for (uint32_t i = 0; i < mapping_->nr_threads; ++i) {
    Shared64& pending = mapping_->threads[i].pending;
    const uint32_t number = PendingChunk(LoadRelaxed(pending));
    if (!IsChunk(number)) continue;
    const int list = ListOfWord(LoadRelaxed(mapping_->chunks[number].word));
    if (list >= kNumLists || !SaysHere(number, list)) continue;
    if (!HasPlaceLocked(list, number)) AdoptLocked(list, number);
    Store(pending, uint64_t{0});
  }
}

bool Pageset::HasPlaceLocked(int list, uint32_t number) const {
  const auto l = static_cast<size_t>(list);
  const PagesetList& rest = p_->lists[l];
  bool placed = number == TopChunk(LoadRelaxed(p_->top[l])) ||
                number == LoadRelaxed(rest.spare);
  uint32_t next = LoadRelaxed(rest.hot);
  for (uint32_t i = LoadRelaxed(rest.nr_deque);
       i > 0 && !placed && IsChunk(next); --i) {
    placed = next == number;
    next = LoadRelaxed(mapping_->chunks[next].next);
  }
  return placed;
}

void Pageset::AdoptLocked(int list, uint32_t number) {
  const auto l = static_cast<size_t>(list);
  const uint32_t count =
      std::min(LoadRelaxed(mapping_->chunks[number].count), kChunkBlocks);
  if (TopChunk(LoadRelaxed(p_->top[l])) == kNoChunk) {
    Store(p_->top[l], TopWord(number, count));
  } else if (LoadRelaxed(p_->lists[l].spare) == kNoChunk) {
    Store(p_->lists[l].spare, number);
  } else {
    PushColdLocked(list, number);
  }
  Store(p_->pages, LoadRelaxed(p_->pages) + (count << ListOrder(list)));
}

}  // namespace memtuned
