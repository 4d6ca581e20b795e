// SPDX-License-Identifier: Apache-2.0
// The cold end of a pageset: its deque, flushes and drains. Chunk numbers that
// are out of range are taken for none: drains are the daemon's as well.
#include <algorithm>

#include "core/mm/pageset.h"

namespace memtuned {

void Pageset::PushHotLocked(int list, uint32_t number) {
  PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  const uint32_t hot = LoadRelaxed(rest.hot);
  Chunk& chunk = mapping_->chunks[number];
  Store(chunk.next, hot);
  Store(chunk.prev, kNoChunk);
  MarkPageset(list, number);
  if (IsChunk(hot)) Store(mapping_->chunks[hot].prev, number);
  Store(rest.hot, number);
  if (hot == kNoChunk) Store(rest.cold, number);
  Bump(rest.nr_deque);
}

void Pageset::PushColdLocked(int list, uint32_t number) {
  PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  const uint32_t cold = LoadRelaxed(rest.cold);
  Chunk& chunk = mapping_->chunks[number];
  Store(chunk.prev, cold);
  Store(chunk.next, kNoChunk);
  MarkPageset(list, number);
  if (IsChunk(cold)) Store(mapping_->chunks[cold].next, number);
  Store(rest.cold, number);
  if (cold == kNoChunk) Store(rest.hot, number);
  Bump(rest.nr_deque);
}

uint32_t Pageset::PopHotLocked(int list) {
  PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  const uint32_t number = LoadRelaxed(rest.hot);
  if (LoadRelaxed(rest.nr_deque) == 0 || !IsChunk(number)) return kNoChunk;
  chunks_.PickUp(number);
  const uint32_t next = LoadRelaxed(mapping_->chunks[number].next);
  Store(rest.hot, next);
  if (!IsChunk(next)) {
    Store(rest.cold, kNoChunk);
  } else {
    Store(mapping_->chunks[next].prev, kNoChunk);
  }
  Bump(rest.nr_deque, ~0u);
  return number;
}

uint32_t Pageset::PopColdLocked(int list) {
  PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  const uint32_t number = LoadRelaxed(rest.cold);
  if (LoadRelaxed(rest.nr_deque) == 0 || !IsChunk(number)) return kNoChunk;
  chunks_.PickUp(number);
  const uint32_t previous = LoadRelaxed(mapping_->chunks[number].prev);
  Store(rest.cold, previous);
  if (!IsChunk(previous)) {
    Store(rest.hot, kNoChunk);
  } else {
    Store(mapping_->chunks[previous].next, kNoChunk);
  }
  Bump(rest.nr_deque, ~0u);
  return number;
}

bool Pageset::ListEmptyLocked(int list) const {
  const auto l = static_cast<size_t>(list);
  return TopCount(LoadRelaxed(p_->top[l])) == 0 && OnlyLoadedLocked(list);
}

bool Pageset::OnlyLoadedLocked(int list) const {
  const PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  const uint32_t spare = LoadRelaxed(rest.spare);
  return LoadRelaxed(rest.nr_deque) == 0 &&
         (!IsChunk(spare) || LoadRelaxed(mapping_->chunks[spare].count) == 0);
}

uint32_t Pageset::DetachColdestLocked(int list) {
  const auto l = static_cast<size_t>(list);
  uint32_t number = PopColdLocked(list);
  if (number != kNoChunk) {
    chunks_.MarkThread(number, list);
    return number;
  }
  PagesetList& rest = p_->lists[l];
  const uint32_t spare = LoadRelaxed(rest.spare);
  if (IsChunk(spare) && LoadRelaxed(mapping_->chunks[spare].count) != 0) {
    TakeSpareLocked(list);
    return spare;
  }
  return TakeLoadedLocked(list, /*with_blocks=*/true);
}

void Pageset::TakeSpareLocked(int list) {
  Shared32& spare = p_->lists[static_cast<size_t>(list)].spare;
  const uint32_t number = LoadRelaxed(spare);
  chunks_.PickUp(number);
  chunks_.MarkThread(number, list);
  Store(spare, kNoChunk);
}

uint32_t Pageset::TakeLoadedLocked(int list, bool with_blocks) {
  const auto l = static_cast<size_t>(list);
  const uint64_t top = LoadRelaxed(p_->top[l]);
  const uint32_t number = TopChunk(top);
  if (!IsChunk(number) || (with_blocks && TopCount(top) == 0)) return kNoChunk;
  chunks_.PickUp(number);
  Store(mapping_->chunks[number].count, TopCount(top));
  chunks_.MarkThread(number, list);
  Store(p_->top[l], kNoTop);
  return number;
}

void Pageset::PlaceColdLocked(int list, uint32_t number) {
  const auto l = static_cast<size_t>(list);
  const uint32_t count = LoadRelaxed(mapping_->chunks[number].count);
  if (TopChunk(LoadRelaxed(p_->top[l])) == kNoChunk) {
    MarkPageset(list, number);
    Store(p_->top[l], TopWord(number, count));
    chunks_.PutDown();
  } else if (count > 0) {
    PushColdLocked(list, number);
    chunks_.PutDown();
  } else {
    chunks_.GiveEmpty(number);
  }
}

void Pageset::FlushLocked(int first_list, const FlushDecision& decision) {
  const auto cause = static_cast<size_t>(
      decision.free_high ? FlushReason::kFreeHigh : FlushReason::kHigh);
  const bool ours =
      p_->policy == static_cast<uint8_t>(PagesetPolicy::kMemtuned);
  const uint64_t pages = ours ? FlushOursLocked(first_list, decision)
                              : FlushEraLocked(first_list, decision.pages,
                                               decision.pages_per_hold);
  if (pages == 0) return;  // all of it parked in the depot, which counts it
  Bump(p_->flushes[cause]);
  Bump(p_->flushed_pages[cause], pages);
}

uint64_t Pageset::FlushColdestLocked(int list, uint32_t blocks) {
  const int order = ListOrder(list);
  const uint32_t chunk = DetachColdestLocked(list);
  if (chunk == kNoChunk) return 0;
  const uint32_t n = std::min(
      {blocks, kChunkBlocks, LoadRelaxed(mapping_->chunks[chunk].count)});
  zone_->FreeFromChunkLocked(chunk, order, n);
  PlaceColdLocked(list, chunk);
  AddPages(-(int64_t{n} << order));
  return uint64_t{n} << order;
}

// As in the kernel since 5.18: from the list just freed to until the quota is
// met or it is empty, then the next list cyclically; the quota may be overshot
// by the last block.
uint64_t Pageset::FlushEraLocked(int first_list, uint32_t pages,
                                 uint32_t pages_per_hold) {
  uint64_t flushed = 0;
  uint64_t in_hold = 0;
  int list = first_list;
  int empty_lists = 0;
  if (!zone_->Lock(*thread_)) return 0;
  while (flushed < pages && empty_lists < kNumLists) {
    if (ListEmptyLocked(list)) {
      list = (list + 1) % kNumLists;
      ++empty_lists;
      continue;
    }
    empty_lists = 0;
    if (in_hold >= pages_per_hold) {
      zone_->Unlock(in_hold);
      if (!zone_->Lock(*thread_)) return flushed;
      in_hold = 0;
    }
    const int order = ListOrder(list);
    const uint64_t left =
        std::min<uint64_t>(pages - flushed, pages_per_hold - in_hold);
    const auto blocks =
        static_cast<uint32_t>((left + (1u << order) - 1) >> order);
    const uint64_t now = FlushColdestLocked(list, blocks);
    flushed += now;
    in_hold += now;
  }
  zone_->Unlock(in_hold);
  return flushed;
}

bool Pageset::ParkColdestLocked(int list, uint64_t* pages) {
  PagesetList& rest = p_->lists[static_cast<size_t>(list)];
  const uint32_t spare = LoadRelaxed(rest.spare);
  const uint32_t coldest =
      LoadRelaxed(rest.nr_deque) != 0 ? LoadRelaxed(rest.cold) : spare;
  if (!IsChunk(coldest)) return false;
  const uint32_t count = LoadRelaxed(mapping_->chunks[coldest].count);
  if (count < kChunkBlocks) return false;  // only whole batches are parked
  if (!DepotHasRoom(list)) return false;
  const uint64_t chunk_pages = uint64_t{count} << ListOrder(list);
  const uint32_t chunk = DetachColdestLocked(list);
  if (!chunks_.DepotPush(zone_->shared(), list, chunk)) {
    PlaceColdLocked(list, chunk);
    return false;
  }
  AddPages(-static_cast<int64_t>(chunk_pages));
  *pages = chunk_pages;
  return true;
}

bool Pageset::DepotHasRoom(int list) const {
  const ZoneShared& z = zone_->shared();
  return z.DepotPages() + (uint64_t{kChunkBlocks} << ListOrder(list)) <=
         LoadRelaxed(z.depot_max_pages);
}

// A chunk that is not full is no reason for a second hold. But once it is
// gone, the full one behind it is for the depot if that has room.
uint64_t Pageset::FlushUnderOneHoldLocked(int list, uint64_t quota,
                                          bool keep_loaded) {
  const int order = ListOrder(list);
  uint64_t pages = 0;
  if (!zone_->Lock(*thread_)) return 0;
  do {
    const uint64_t left = (quota - pages + (1u << order) - 1) >> order;
    const auto blocks = static_cast<uint32_t>(
        std::min<uint64_t>(left, kChunkBlocks - (pages >> order)));
    pages += FlushColdestLocked(list, blocks);
  } while (pages < quota && pages >> order < kChunkBlocks &&
           !ListEmptyLocked(list) && !DepotHasRoom(list) &&
           !(keep_loaded && OnlyLoadedLocked(list)));
  zone_->Unlock(pages);
  return pages;
}

// Whole chunks to the depot while it has room; else to the zone, at most 64
// blocks per hold. A free-high flush leaves order 0, the huge order and each
// list's loaded chunk alone.
uint64_t Pageset::FlushOursLocked(int first_list,
                                  const FlushDecision& decision) {
  uint64_t moved = 0;
  uint64_t to_zone = 0;
  for (int i = 0; i < kNumLists && moved < decision.pages; ++i) {
    const int list = (first_list + i) % kNumLists;
    const int order = ListOrder(list);
    if (decision.high_orders_only && (order == 0 || order > kCostlyOrder)) {
      continue;
    }
    while (moved < decision.pages && !ListEmptyLocked(list)) {
      uint64_t pages = 0;
      if (ParkColdestLocked(list, &pages)) {
        moved += pages;
        continue;
      }
      if (decision.high_orders_only && OnlyLoadedLocked(list)) break;
      pages = FlushUnderOneHoldLocked(list, decision.pages - moved,
                                      decision.high_orders_only);
      if (pages == 0) return to_zone;
      moved += pages;
      to_zone += pages;
    }
  }
  return to_zone;
}

uint64_t Pageset::DrainListLocked(int list) {
  const auto l = static_cast<size_t>(list);
  const auto cause = static_cast<size_t>(FlushReason::kDrain);
  uint64_t drained = 0;
  for (uint32_t chunks = 0; !ListEmptyLocked(list); ++chunks) {
    if (chunks > mapping_->nr_chunks) {
      zone_->shared().Degrade(Degraded::kChunks);
      break;
    }
    if (!zone_->Lock(*thread_)) break;
    const uint64_t pages = FlushColdestLocked(list, kChunkBlocks);
    zone_->Unlock(pages);
    if (pages == 0) break;
    drained += pages;
    Bump(p_->flushes[cause]);
  }
  Bump(p_->flushed_pages[cause], drained);
  if (!ListEmptyLocked(list)) return drained;
  const uint32_t loaded = TakeLoadedLocked(list, /*with_blocks=*/false);
  if (loaded != kNoChunk) chunks_.GiveEmpty(loaded);
  const uint32_t spare = LoadRelaxed(p_->lists[l].spare);
  if (IsChunk(spare)) {
    TakeSpareLocked(list);
    chunks_.GiveEmpty(spare);
  }
  return drained;
}

uint64_t Pageset::Drain() {
  if (mapping_->guard == GuardKind::kClosed) return 0;
  const bool idle = LoadRelaxed(p_->pages) == 0 && p_->guard.HolderNow() == 0;
  if (idle || !LockFromAnywhere()) return 0;
  uint64_t drained = 0;
  for (int list = 0; list < kNumLists; ++list) drained += DrainListLocked(list);
  p_->guard.UnlockFromAnywhere(mapping_->guard);
  return drained;
}

uint64_t Pageset::FlushColdLocked(uint64_t pages) {
  uint64_t flushed = 0;
  for (int list = 0; list < kNumLists; ++list) {
    while (flushed < pages && !ListEmptyLocked(list)) {
      const uint64_t now = FlushUnderOneHoldLocked(list, pages - flushed,
                                                   /*keep_loaded=*/false);
      if (now == 0) return flushed;
      flushed += now;
    }
  }
  return flushed;
}

uint64_t Pageset::Decay() {
  if (mapping_->guard == GuardKind::kClosed) return 0;
  const PagesetLimits limits = zone_->LimitsNow();
  const auto decays = [&limits](const PolicyState& state) {
    return state.count != 0 && DecayedHigh(limits, state) != state.high;
  };
  PolicyState seen;
  seen.count = LoadRelaxed(p_->pages);
  seen.high = LoadRelaxed(p_->high);
  if (!decays(seen) || !LockFromAnywhere()) return 0;
  PolicyState state = StateLocked();
  uint64_t flushed = 0;
  if (decays(state)) {
    state.high = DecayedHigh(limits, state);
    StoreStateLocked(state);
    if (state.count > state.high) {
      flushed = FlushColdLocked(state.count - state.high);
      const auto cause = static_cast<size_t>(FlushReason::kDecay);
      Bump(p_->flushes[cause]);
      Bump(p_->flushed_pages[cause], flushed);
    }
  }
  p_->guard.UnlockFromAnywhere(mapping_->guard);
  return flushed;
}

uint64_t Pageset::DrainDepot(const Mapping& mapping, Zone& zone,
                             ThreadContext& thread) {
  ChunkPool pool(mapping, thread);
  uint64_t drained = 0;
  for (int list = 0; list < kNumLists; ++list) {
    for (uint32_t chunks = 0; chunks <= kMaxStackCount; ++chunks) {
      const uint32_t chunk = pool.DepotPop(zone.shared(), list);
      if (chunk == kNoChunk) break;
      const uint32_t count =
          std::min(LoadRelaxed(mapping.chunks[chunk].count), kChunkBlocks);
      const uint64_t pages = uint64_t{count} << ListOrder(list);
      if (!zone.Lock(thread)) {
        pool.DepotPush(zone.shared(), list, chunk);
        return drained;
      }
      zone.FreeFromChunkLocked(chunk, ListOrder(list), count);
      zone.Unlock(pages);
      drained += pages;
      pool.GiveEmpty(chunk);
    }
  }
  return drained;
}

}  // namespace memtuned
