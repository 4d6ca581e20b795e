// SPDX-License-Identifier: Apache-2.0
// Chunks: arrays of up to 64 blocks of one list, the unit in which pages move
// between pagesets, the depot and the hands of a thread. Where a chunk is, is
// said by its word alone, so moving a batch is one store, never a loop over
// pages. Floor 1.
#ifndef MEMTUNED_CORE_MM_CHUNK_H_
#define MEMTUNED_CORE_MM_CHUNK_H_

#include <array>
#include <cstdint>

#include "core/base/pfn.h"
#include "core/base/shm.h"
#include "core/base/shm_lock.h"

namespace memtuned {

inline constexpr uint32_t kChunkBlocks = 64;
// Chunk 0 is nobody's: zeroed memory is a valid, empty pageset and stack.
inline constexpr uint32_t kNoChunk = 0;

// Lists of a pageset and of a depot, order-major as in the kernel: orders
// 0..3 and the huge-page order, two page types each.
inline constexpr int kNumOrderSlots = 5;
inline constexpr int kNumLists = kNumOrderSlots * kNumPageTypes;

// Returns: the slot of a cached order, -1 for orders no pageset holds.
constexpr int OrderSlot(int order) {
  return order <= kCostlyOrder ? order : (order == kHugeOrder ? 4 : -1);
}
constexpr int ListOf(int order_slot, PageType type) {
  return order_slot * kNumPageTypes + static_cast<int>(type);
}
constexpr int ListOrder(int list) {
  const int slot = list / kNumPageTypes;
  return slot == 4 ? kHugeOrder : slot;
}
constexpr PageType ListType(int list) {
  return static_cast<PageType>(list % kNumPageTypes);
}

enum class ChunkPlace : uint8_t {
  kUnused = 0,   // never handed out
  kEmpty = 1,    // in the stack of empties
  kThread = 2,   // in a thread's hands: ref is its ThreadOwner
  kPageset = 3,  // ref is the pageset's number
  kDepot = 4,    // ref is the zone's number
};

// place 8 | list 8 | unused 16 | ref 32
constexpr uint64_t ChunkWord(ChunkPlace place, int list, uint32_t ref) {
  return static_cast<uint64_t>(place) | static_cast<uint64_t>(list) << 8 |
         static_cast<uint64_t>(ref) << 32;
}
constexpr ChunkPlace PlaceOf(uint64_t word) {
  return static_cast<ChunkPlace>(word & 255);
}
constexpr int ListOfWord(uint64_t word) {
  return static_cast<int>(word >> 8 & 255);
}
constexpr uint32_t RefOfWord(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}

struct alignas(64) Chunk {
  Shared64 word;
  // Blocks in items[0..count). Stale while the chunk is the loaded one of a
  // pageset: then PagesetShared::top has the number.
  Shared32 count;
  Shared32 next, prev;  // stack link; deque links (next is colder)
  uint32_t padding[11];
  std::array<Shared32, kChunkBlocks> items;  // pfns, the hottest last
};
static_assert(sizeof(Chunk) == 320);

// A stack of chunks. `head` commits each change with one store: it is
// tag 25 | parity 1 | count 14 | chunk 24, and parity says which of `pages` is
// in force. The lock is tried, and waited for only as long as its holder takes;
// whoever cannot have it goes without.
struct alignas(64) ChunkStack {
  ShmLock<LockRank::kStack> lock;
  // Of a stack of empties: the chunks that it hands out for the first time are
  // fresh_begin to fresh_end, `fresh` is the next one. Under the lock.
  Shared32 fresh, fresh_begin, fresh_end;
  Shared64 head;
  std::array<Shared64, 2> pages;  // in all its chunks

  static constexpr uint32_t ChunkOf(uint64_t head) {
    return static_cast<uint32_t>(head & 0xffffff);
  }
  static constexpr uint32_t CountOf(uint64_t head) {
    return static_cast<uint32_t>(head >> 24 & 0x3fff);
  }
  static constexpr size_t ParityOf(uint64_t head) { return head >> 38 & 1; }
  static constexpr uint64_t Next(uint64_t old_head, uint32_t count,
                                 uint32_t chunk) {
    const uint64_t tag = (old_head >> 38) + 1;
    return tag << 38 | static_cast<uint64_t>(count & 0x3fff) << 24 | chunk;
  }
  uint64_t PagesNow() const {
    return LoadRelaxed(pages[ParityOf(LoadRelaxed(head))]);
  }
};
inline constexpr uint32_t kMaxChunks = 1u << 24;
// Chunks one stack can count; a stack of empties counts modulo this.
inline constexpr uint32_t kMaxStackCount = 0x3fff;
// Stacks of empties: a stopped process can hold up one of them.
inline constexpr int kNumEmptyStacks = 4;

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_CHUNK_H_
