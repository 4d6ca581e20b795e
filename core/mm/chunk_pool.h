// SPDX-License-Identifier: Apache-2.0
// Moving chunks: the stack of empties, the depots, and a thread's hands. All
// lock-free; `pending` in the thread's slot names the one chunk that is in
// doubt while a compare and swap is under way. Floor 1.
#ifndef MEMTUNED_CORE_MM_CHUNK_POOL_H_
#define MEMTUNED_CORE_MM_CHUNK_POOL_H_

#include <cstdint>

#include "core/mm/mapping.h"

namespace memtuned {

// Thread safety: any thread; `thread` is the caller's own.
class ChunkPool {
 public:
  ChunkPool(const Mapping& mapping, ThreadContext& thread)
      : mapping_(&mapping), thread_(&thread) {}

  // An empty chunk, in this thread's hands, for `list`.
  // Returns: kNoChunk when the chunk table is used up.
  uint32_t TakeEmpty(int list);
  // REQUIRES: the chunk is in this thread's hands and holds nothing.
  void GiveEmpty(uint32_t chunk);

  // Parks a chunk of this thread in the zone's depot.
  // Returns: false when the depot counts no more chunks; nothing moved.
  bool DepotPush(ZoneShared& zone, int list, uint32_t chunk);
  // Returns: a chunk with blocks, in this thread's hands; kNoChunk when the
  // depot has none for `list`.
  uint32_t DepotPop(ZoneShared& zone, int list);

  void MarkThread(uint32_t chunk, int list) {
    Store(mapping_->chunks[chunk].word,
          ChunkWord(ChunkPlace::kThread, list, thread_->owner));
  }

 private:
  bool Push(ChunkStack& stack, uint32_t chunk, uint64_t word, bool counted);
  uint32_t Pop(ChunkStack& stack, int list);
  void SetPending(uint64_t value) {
    if (thread_->slot != nullptr) Store(thread_->slot->pending, value);
  }

  const Mapping* mapping_;
  ThreadContext* thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_CHUNK_POOL_H_
