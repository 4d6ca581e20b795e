// SPDX-License-Identifier: Apache-2.0
// Moving chunks: the stacks of empties, the depots, and a thread's hands. A
// thread moves one chunk at a time, and `pending` in its slot names it from
// before it leaves its place until it is in another one. So if the thread dies
// no chunk is lost: it is in a place, or it is named. Floor 1.
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
  // Returns: false when the depot counts no more chunks, or is not to be had;
  // nothing moved.
  bool DepotPush(ZoneShared& zone, int list, uint32_t chunk);
  // Returns: a chunk with blocks, in this thread's hands; kNoChunk when the
  // depot has none for `list`, or is not to be had.
  uint32_t DepotPop(ZoneShared& zone, int list);

  enum class Park { kParked, kRefused, kNoRoom };
  // Frees one block without the zone lock: in a chunk of its own, to the depot.
  // For when that lock is held by somebody who does not run.
  // `word`: the block's word, kRefused when it moved meanwhile.
  Park ParkBlock(ZoneShared& zone, int list, Pfn pfn, PageWord word);

  // The chunk that is about to leave its place: one at a time.
  void PickUp(uint32_t chunk) { SetPending(kPendingChunk | chunk); }
  // It is in a place again.
  void PutDown() { SetPending(0); }
  // REQUIRES: picked up.
  void MarkThread(uint32_t chunk, int list) {
    Store(mapping_->chunks[chunk].word,
          ChunkWord(ChunkPlace::kThread, list, thread_->owner));
  }

  // Takes the lock of a stack over if its holder died.
  void RecoverStack(ChunkStack& stack, uint64_t place);
  // Places of the chunks in a stack: of empties, of a depot.
  static constexpr uint64_t EmptyPlace() {
    return ChunkWord(ChunkPlace::kEmpty, 0, 0);
  }
  static constexpr uint64_t DepotPlace(uint32_t zone, int list) {
    return ChunkWord(ChunkPlace::kDepot, list, zone);
  }

 private:
  // `place`: the word of chunks in this stack.
  bool Lock(ChunkStack& stack, uint64_t place) TRY_ACQUIRE(true, stack.lock);
  void EndChangesLocked(ChunkStack& stack, uint64_t place) REQUIRES(stack.lock);
  void PushLocked(ChunkStack& stack, uint32_t chunk, uint64_t place,
                  uint64_t pages) REQUIRES(stack.lock);
  uint32_t PopLocked(ChunkStack& stack, int list, bool counts_pages)
      REQUIRES(stack.lock);
  uint32_t FreshLocked(ChunkStack& stack, int list) REQUIRES(stack.lock);
  uint32_t NumberOf(const ZoneShared& zone) const {
    return static_cast<uint32_t>(&zone - mapping_->zones);
  }
  uint64_t PagesOf(uint32_t chunk, int list) const {
    return uint64_t{LoadRelaxed(mapping_->chunks[chunk].count)}
           << ListOrder(list);
  }
  void SetPending(uint64_t value);

  const Mapping* mapping_;
  ThreadContext* thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_CHUNK_POOL_H_
