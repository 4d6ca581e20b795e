// SPDX-License-Identifier: Apache-2.0
#include "core/mm/chunk_pool.h"

namespace memtuned {

uint32_t ChunkPool::TakeEmpty(int list) {
  const uint32_t chunk = Pop(*mapping_->empty_chunks, list);
  if (chunk != kNoChunk) return chunk;
  uint32_t fresh = LoadRelaxed(*mapping_->fresh_chunks);
  while (fresh < mapping_->nr_chunks) {
    if (!Exchange(*mapping_->fresh_chunks, fresh, fresh + 1)) continue;
    MarkThread(fresh, list);
    return fresh;
  }
  return kNoChunk;
}

void ChunkPool::GiveEmpty(uint32_t chunk) {
  Push(*mapping_->empty_chunks, chunk, ChunkWord(ChunkPlace::kEmpty, 0, 0),
       /*counted=*/false);
}

bool ChunkPool::DepotPush(ZoneShared& zone, int list, uint32_t chunk) {
  const uint64_t pages = uint64_t{LoadRelaxed(mapping_->chunks[chunk].count)}
                         << ListOrder(list);
  if (!Push(zone.depot[static_cast<size_t>(list)], chunk,
            ChunkWord(ChunkPlace::kDepot, list, zone.number), true)) {
    return false;
  }
  AtomicBump(zone.depot_pages, pages);
  AtomicBump(zone.depot_pushes);
  env::Charge(env::Cost::kDepotMove);
  return true;
}

uint32_t ChunkPool::DepotPop(ZoneShared& zone, int list) {
  ChunkStack& stack = zone.depot[static_cast<size_t>(list)];
  // Most refills find an empty depot: look before touching `pending`.
  if (ChunkStack::ChunkOf(LoadRelaxed(stack.head)) == kNoChunk) return kNoChunk;
  const uint32_t chunk = Pop(stack, list);
  if (chunk == kNoChunk) return kNoChunk;
  const uint64_t pages = uint64_t{LoadRelaxed(mapping_->chunks[chunk].count)}
                         << ListOrder(list);
  AtomicBump(zone.depot_pages, ~pages + 1);
  AtomicBump(zone.depot_pops);
  env::Charge(env::Cost::kDepotMove);
  return chunk;
}

bool ChunkPool::Push(ChunkStack& stack, uint32_t number, uint64_t word,
                     bool counted) {
  Chunk& chunk = mapping_->chunks[number];
  uint64_t head = Load(stack.head);
  if (counted && ChunkStack::CountOf(head) >= kMaxStackCount) return false;
  SetPending(kPendingChunk | number);
  // The word before the swap: a chunk that says depot but is in no stack is
  // pushed again by whoever reaps this thread.
  Store(chunk.word, word);
  uint64_t next;
  do {
    Store(chunk.next, ChunkStack::ChunkOf(head));
    next = ChunkStack::Make(
        head, (ChunkStack::CountOf(head) + 1) & kMaxStackCount, number);
  } while (!Exchange(stack.head, head, next));
  SetPending(0);
  return true;
}

uint32_t ChunkPool::Pop(ChunkStack& stack, int list) {
  uint64_t head = Load(stack.head);
  uint32_t number;
  uint64_t next;
  do {
    number = ChunkStack::ChunkOf(head);
    if (number == kNoChunk || number >= mapping_->nr_chunks) {
      SetPending(0);
      return kNoChunk;
    }
    SetPending(kPendingChunk | number);
    // May be stale; then the tag has moved and the swap fails.
    const uint32_t below = Load(mapping_->chunks[number].next);
    next = ChunkStack::Make(
        head, (ChunkStack::CountOf(head) - 1) & kMaxStackCount, below);
  } while (!Exchange(stack.head, head, next));
  MarkThread(number, list);
  SetPending(0);
  return number;
}

}  // namespace memtuned
