// SPDX-License-Identifier: Apache-2.0
// The memmap: 16 bytes a page. A block of 2^order pages is described by the
// word of its first page (its head) alone; the words inside it are implied by
// its order and never say allocated, offered or purgeable. So every transition
// of a block commits with one atomic store, and wild and double frees are
// refused by looking at one word. Everything else (free areas, chunks, counts)
// is an index that can be rebuilt from these words. Floor 1.
#ifndef MEMTUNED_CORE_MM_PAGE_H_
#define MEMTUNED_CORE_MM_PAGE_H_

#include <cstdint>

#include "core/base/pfn.h"
#include "core/base/shm.h"

namespace memtuned {

enum class PageKind : uint8_t {
  kUntouched = 0,  // never written, or inside a larger block
  kFree = 1,       // head of a free block of a zone
  kCached = 2,     // in a chunk: ref is the chunk's number
  kAllocated = 3,  // ref is the owner
  kOffered = 4,    // ref is the offerer; Page::next the process it is for
  kPurgeable = 5,  // reserved for pages that may be taken back
  kTaking = 6,     // reserved
  kOffline = 7,    // reserved
};

// Owner of a block: a process slot's generation and number, never 0.
using ProcessOwner = uint32_t;

// One memmap word:
//   kind 4 | order 4 | type 2 | lru 4 | generation 18 | ref 32
class PageWord {
 public:
  constexpr explicit PageWord(uint64_t bits) : bits_(bits) {}

  constexpr PageKind kind() const { return static_cast<PageKind>(bits_ & 15); }
  constexpr int order() const { return static_cast<int>(bits_ >> 4 & 15); }
  constexpr PageType type() const {
    return static_cast<PageType>(bits_ >> 8 & 3);
  }
  constexpr bool labelled() const { return (bits_ & kLabelled) != 0; }
  // Grows by one each time the block is freed or offered, so that a word read
  // earlier cannot be mistaken for today's.
  constexpr uint32_t generation() const {
    return static_cast<uint32_t>(bits_ >> 14 & 0x3ffff);
  }
  constexpr uint32_t ref() const { return static_cast<uint32_t>(bits_ >> 32); }
  constexpr uint64_t bits() const { return bits_; }

  // The word of the same page (type and generation kept) in another state.
  constexpr PageWord With(PageKind kind, int order, uint32_t ref) const {
    return PageWord((bits_ & kKept) | State(kind, order, ref));
  }
  constexpr PageWord WithType(PageType type) const {
    return PageWord((bits_ & ~kType) | static_cast<uint64_t>(type) << 8);
  }
  constexpr PageWord NextGeneration() const {
    return PageWord((bits_ & ~kGeneration) |
                    ((bits_ + (1ull << 14)) & kGeneration));
  }
  constexpr PageWord WithLabel() const { return PageWord(bits_ | kLabelled); }

  // Kind, order and ref at once: one comparison on the fast path.
  static constexpr uint64_t State(PageKind kind, int order, uint32_t ref) {
    return static_cast<uint64_t>(kind) | static_cast<uint64_t>(order) << 4 |
           static_cast<uint64_t>(ref) << 32;
  }
  constexpr bool HasState(uint64_t state) const {
    return (bits_ & kState) == state;
  }
  // The same, and the page's type is kOrdinary.
  constexpr bool IsOrdinary(uint64_t state) const {
    return (bits_ & (kState | kType)) == state;
  }
  // What the word of a cached block becomes when it is handed out: `state` is
  // State(kAllocated, 0, owner).
  constexpr PageWord Taken(uint64_t state) const {
    return PageWord((bits_ & (kKept | kOrder)) | state);
  }
  // What the word of an allocated block becomes when it is given back.
  constexpr PageWord Given(uint32_t chunk) const {
    // In 32 bits, so that the generation wraps.
    const uint32_t low = static_cast<uint32_t>(bits_) + (1u << 14);
    return PageWord((low & static_cast<uint32_t>(kKept | kOrder)) |
                    State(PageKind::kCached, 0, chunk));
  }
  constexpr bool Is(PageKind kind, int order) const {
    return (bits_ & 0xff) ==
           (static_cast<uint64_t>(kind) | static_cast<uint64_t>(order) << 4);
  }

 private:
  static constexpr uint64_t kGeneration = 0x3ffffull << 14;
  static constexpr uint64_t kLabelled = 1ull << 10;  // lru bit of ordinary
  static constexpr uint64_t kOrder = 0xf0;
  static constexpr uint64_t kState = 0xffffffff000000ffull;
  static constexpr uint64_t kType = 3ull << 8;
  static constexpr uint64_t kKept = kGeneration | kType;

  uint64_t bits_;
};

struct Page {
  Shared64 word;
  // LRU links of a purgeable page. Of an allocated one: next is the thread
  // that took it; of an offered one, the process it is for (0: any). Of a
  // labelled one: prev is the caller's 8-bit label.
  Shared32 next;
  Shared32 prev;
};
static_assert(sizeof(Page) == 16);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_PAGE_H_
