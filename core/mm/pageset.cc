// SPDX-License-Identifier: Apache-2.0
#include "core/mm/pageset.h"

#include <algorithm>

#include "core/mm/owners.h"

namespace memtuned {

void Pageset::SyncLimitsLocked() {
  // Pairs with the release in Zone::PublishLimits.
  const uint32_t control = Load(zone_->shared().control) & ~kZoneFlags;
  if (control == p_->seen) return;
  MarkUsed();
  const PagesetLimits limits = zone_->LimitsNow();
  p_->batch = limits.batch;
  p_->policy = static_cast<uint8_t>(limits.policy);
  p_->free_count_cap = FreeCountCap(limits);
  p_->free_high_threshold = FreeHighThreshold(limits, LoadRelaxed(p_->high));
  p_->consecutive_only = ConsecutiveOnly(limits.policy);
  p_->large_cache = mapping_->llc_pages_per_cpu > 3 * uint64_t{limits.batch};
  p_->seen = control;
  // A list that the policy does not keep must have no chunk to push to.
  for (int list = 0; list < kNumLists; ++list) {
    if (!PolicyCaches(limits.policy, ListOrder(list))) DrainListLocked(list);
  }
}

void Pageset::MarkUsed() {
  const uint32_t cpu = mapping_->NumberOf(*p_) % mapping_->nr_cpus;
  Shared64& word = zone_->shared().used_cpus[cpu / 64];
  const uint64_t bit = 1ull << (cpu % 64);
  if ((LoadRelaxed(word) & bit) == 0) word.fetch_or(bit);
}

PolicyState Pageset::StateLocked() const {
  PolicyState state;
  state.count = LoadRelaxed(p_->pages);
  state.high = LoadRelaxed(p_->high);
  state.free_count = p_->free_count;
  state.alloc_factor = p_->alloc_factor;
  state.previous_free_was_high_order = p_->previous_free_was_high_order;
  state.large_cache = p_->large_cache;
  return state;
}

void Pageset::StoreStateLocked(const PolicyState& state) {
  p_->free_count = state.free_count;
  p_->alloc_factor = state.alloc_factor;
  if (state.high == LoadRelaxed(p_->high)) return;
  p_->high.store(state.high, std::memory_order_relaxed);
  p_->free_high_threshold = FreeHighThreshold(zone_->LimitsNow(), state.high);
}

ZoneConditions Pageset::Conditions() const {
  const uint32_t flags = LoadRelaxed(zone_->shared().control);
  return ZoneConditions{(flags & kZoneReclaimActive) != 0,
                        (flags & kZoneBelowHigh) != 0};
}

Pageset::Take Pageset::TakeBlocks(int order, PageType type, Mark mark, Pfn* out,
                                  uint32_t want, uint32_t* taken) {
  *taken = 0;
  const int slot = OrderSlot(order);
  if (slot < 0 || !PolicyCaches(zone_->LimitsNow().policy, order)) {
    MarkUsed();  // what goes past the pageset is counted on it
    return Take::kNotCached;
  }
  if (!p_->guard.TryLock(thread_->owner, seat_) &&
      !(Recover() && p_->guard.TryLock(thread_->owner, seat_))) {
    AtomicBump(p_->trylock_misses);
    return Take::kMissed;
  }
  SyncLimitsLocked();
  if (!PolicyCaches(static_cast<PagesetPolicy>(p_->policy), order)) {
    p_->guard.Unlock();
    return Take::kNotCached;
  }
  const int list = ListOf(slot, type);
  const auto l = static_cast<size_t>(list);
  Take result = Take::kTaken;
  uint32_t n = 0;
  while (n < want) {
    if (TopCount(LoadRelaxed(p_->top[l])) == 0 && !RotateInLocked(list) &&
        !LoadFromDepotLocked(list)) {
      bool below = false;
      if (!RefillLocked(list, mark, &below)) {
        result = below ? Take::kBelowMark : Take::kEmpty;
        break;
      }
    }
    const TopBlock block = ReadTop(*mapping_, LoadRelaxed(p_->top[l]));
#ifndef MEMTUNED_MUTANT_LATE_SECTION_FLAG  // only a test flags it afterwards
    mapping_->FlagSection(thread_->process, block.pfn);
#endif
    PopTop(*mapping_, *p_, list, order, block,
           PageWord::State(PageKind::kAllocated, 0, thread_->process),
           thread_->owner);
    out[n++] = block.pfn;
#ifdef MEMTUNED_MUTANT_LATE_SECTION_FLAG
    mapping_->FlagSection(thread_->process, block.pfn);
#endif
    Bump(p_->allocations[static_cast<size_t>(slot)]);
    // A bulk allocation leaves free_count alone, as in the kernel.
    if (want == 1) p_->free_count >>= 1;
    env::Charge(env::Cost::kPagesetOperation);
  }
  p_->guard.Unlock();
  *taken = n;
  return n > 0 ? Take::kTaken : result;
}

// Of a chunk with two places one is taken away when its pageset is recovered;
// one without any must be picked up.
void Pageset::RetireLoadedLocked(int list) {
  const auto l = static_cast<size_t>(list);
  const uint32_t empty = TopChunk(LoadRelaxed(p_->top[l]));
  if (empty == kNoChunk) return;
  Store(mapping_->chunks[empty].count, 0u);
  if (LoadRelaxed(p_->lists[l].spare) == kNoChunk) {
    Store(p_->lists[l].spare, empty);
    Store(p_->top[l], kNoTop);
    return;
  }
  chunks_.PickUp(empty);
  chunks_.MarkThread(empty, list);
  Store(p_->top[l], kNoTop);
  chunks_.GiveEmpty(empty);
}

bool Pageset::RotateInLocked(int list) {
  const auto l = static_cast<size_t>(list);
  const uint32_t empty = TopChunk(LoadRelaxed(p_->top[l]));
  const uint32_t spare = LoadRelaxed(p_->lists[l].spare);
  if (spare != kNoChunk && LoadRelaxed(mapping_->chunks[spare].count) > 0) {
    if (empty != kNoChunk) {
      chunks_.PickUp(empty);
      Store(mapping_->chunks[empty].count, 0u);
    }
    Store(p_->top[l],
          TopWord(spare, LoadRelaxed(mapping_->chunks[spare].count)));
    Store(p_->lists[l].spare, empty);
    if (empty != kNoChunk) chunks_.PutDown();
    return true;
  }
  if (LoadRelaxed(p_->lists[l].nr_deque) == 0) return false;
  RetireLoadedLocked(list);
  const uint32_t next = PopHotLocked(list);
  if (next == kNoChunk) return false;
  Store(p_->top[l], TopWord(next, LoadRelaxed(mapping_->chunks[next].count)));
  chunks_.PutDown();
  return true;
}

bool Pageset::LoadFromDepotLocked(int list) {
  if (p_->policy != static_cast<uint8_t>(PagesetPolicy::kMemtuned)) {
    return false;
  }
  const auto l = static_cast<size_t>(list);
  ZoneShared& zone = zone_->shared();
  if (ChunkStack::ChunkOf(LoadRelaxed(zone.depot[l].head)) == kNoChunk) {
    return false;
  }
  RetireLoadedLocked(list);
  const uint32_t chunk = chunks_.DepotPop(zone, list);
  if (chunk == kNoChunk) return false;
  const uint32_t count = LoadRelaxed(mapping_->chunks[chunk].count);
  MarkPageset(list, chunk);
  Store(p_->top[l], TopWord(chunk, count));
  chunks_.PutDown();
  AddPages(int64_t{count} << ListOrder(list));
  return true;
}

bool Pageset::RefillLocked(int list, Mark mark, bool* below) {
  const int order = ListOrder(list);
  ZoneShared& z = zone_->shared();
  if (!zone_->Above(order, mark)) {
    *below = true;
    return false;
  }
  if ((LoadRelaxed(z.control) & kZoneBelowHigh) == 0 &&
      zone_->FreePages() < LoadRelaxed(z.watermark_high)) {
    zone_->SetFlag(kZoneBelowHigh);
  }
  const PagesetLimits limits = zone_->LimitsNow();
  PolicyState state = StateLocked();
  const uint32_t blocks = RefillBlocks(limits, Conditions(), order, state);
  StoreStateLocked(state);
  return FillChunksLocked(list, blocks,
                          limits.policy != PagesetPolicy::kMemtuned) > 0;
}

// The loaded chunk, which is empty; then further ones.
uint32_t Pageset::ChunkToFillLocked(int list) {
  const auto l = static_cast<size_t>(list);
  const uint64_t top = LoadRelaxed(p_->top[l]);
  const uint32_t loaded = TopChunk(top);
  if (loaded == kNoChunk || TopCount(top) != 0) return chunks_.TakeEmpty(list);
  chunks_.PickUp(loaded);
  Store(mapping_->chunks[loaded].count, 0u);
  chunks_.MarkThread(loaded, list);
  Store(p_->top[l], kNoTop);
  return loaded;
}

uint32_t Pageset::FillUnderOneHoldLocked(int list, uint32_t blocks) {
  const int order = ListOrder(list);
  uint32_t filled = 0;
  if (!zone_->Lock(*thread_)) return 0;
  while (filled < blocks) {
    const uint32_t chunk = ChunkToFillLocked(list);
    if (chunk == kNoChunk) break;
    const uint32_t want = std::min(blocks - filled, kChunkBlocks);
    const uint32_t got =
        zone_->FillChunkLocked(chunk, order, ListType(list), want);
    PlaceColdLocked(list, chunk);
    filled += got;
    if (got < want) break;
  }
  zone_->Unlock(uint64_t{filled} << order);
  if (filled > 0) Bump(p_->refills);
  return filled;
}

uint32_t Pageset::FillChunksLocked(int list, uint32_t blocks, bool one_hold) {
  const int order = ListOrder(list);
  uint32_t filled = 0;
  while (filled < blocks) {
    const uint32_t want =
        one_hold ? blocks : std::min(blocks - filled, kChunkBlocks);
    const uint32_t got = FillUnderOneHoldLocked(list, want);
    filled += got;
    if (got < want) break;
  }
  Bump(p_->refilled_pages, uint64_t{filled} << order);
  AddPages(int64_t{filled} << order);
  return filled;
}

void Pageset::MarkPageset(int list, uint32_t chunk) {
  Store(mapping_->chunks[chunk].word,
        ChunkWord(ChunkPlace::kPageset, list, mapping_->NumberOf(*p_)));
}

bool Pageset::MakeRoomLocked(int list) {
  const auto l = static_cast<size_t>(list);
  PagesetList& rest = p_->lists[l];
  const uint64_t top = LoadRelaxed(p_->top[l]);
  const uint32_t loaded = TopChunk(top);
  if (loaded != kNoChunk && TopCount(top) < kChunkBlocks) return true;
  const uint32_t spare = LoadRelaxed(rest.spare);
  if (loaded != kNoChunk) {
    Store(mapping_->chunks[loaded].count, TopCount(top));
  }
  if (spare != kNoChunk &&
      LoadRelaxed(mapping_->chunks[spare].count) < kChunkBlocks) {
    if (loaded != kNoChunk) chunks_.PickUp(loaded);
    Store(p_->top[l],
          TopWord(spare, LoadRelaxed(mapping_->chunks[spare].count)));
    Store(rest.spare, loaded);
    if (loaded != kNoChunk) chunks_.PutDown();
    return true;
  }
  if (spare != kNoChunk) {
    PushHotLocked(list, spare);
    Store(rest.spare, kNoChunk);
  }
  const uint32_t fresh = chunks_.TakeEmpty(list);
  if (fresh == kNoChunk) return false;
  Store(rest.spare, loaded);
  MarkPageset(list, fresh);
  Store(p_->top[l], TopWord(fresh, 0));
  chunks_.PutDown();
  return true;
}

Pageset::Give Pageset::GiveBlock(Pfn pfn, int order, PageWord word) {
  const int slot = OrderSlot(order);
  if (slot < 0 || !PolicyCaches(zone_->LimitsNow().policy, order)) {
    MarkUsed();
    return Give::kNotCached;
  }
  if (!p_->guard.TryLock(thread_->owner, seat_) &&
      !(Recover() && p_->guard.TryLock(thread_->owner, seat_))) {
    AtomicBump(p_->trylock_misses);
    return Give::kMissed;
  }
  // Before a chunk is in it, so that who drains the used ones finds that.
  SyncLimitsLocked();
  if (!PolicyCaches(static_cast<PagesetPolicy>(p_->policy), order)) {
    p_->guard.Unlock();
    return Give::kNotCached;
  }
  const int list = ListOf(slot, word.type());
  const auto l = static_cast<size_t>(list);
  if (!MakeRoomLocked(list)) {
    p_->guard.Unlock();
    return Give::kNoChunk;
  }
  const uint64_t top = LoadRelaxed(p_->top[l]);
  if (!PushTop</*kStore=*/false>(*mapping_, *p_, list, top, pfn,
                                 mapping_->page(pfn), word)) {
    p_->guard.Unlock();
    return Give::kRefused;
  }
  AddPages(int64_t{1} << order);
  Bump(p_->frees[l / kNumPageTypes]);
  CommitFreeLocked(list, order);
  p_->guard.Unlock();
  return Give::kGiven;
}

void Pageset::CommitFreeLocked(int list, int order) {
  SyncLimitsLocked();
  PolicyState state = StateLocked();
  const bool free_high =
      NoteFree(state, state.count, p_->batch, p_->free_high_threshold,
               p_->free_count_cap, p_->consecutive_only, order);
  p_->previous_free_was_high_order = state.previous_free_was_high_order;
  const FlushDecision decision =
      DecideFlush(zone_->LimitsNow(), Conditions(), free_high, state);
  StoreStateLocked(state);
  env::Charge(env::Cost::kPagesetOperation);
  if (decision.pages == 0) return;
  FlushLocked(list, decision);
  ZoneShared& z = zone_->shared();
  if ((LoadRelaxed(z.control) & kZoneBelowHigh) != 0 &&
      zone_->FreePages() >= LoadRelaxed(z.watermark_high)) {
    zone_->ClearFlag(kZoneBelowHigh);
  }
}

}  // namespace memtuned
