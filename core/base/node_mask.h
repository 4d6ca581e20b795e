// SPDX-License-Identifier: Apache-2.0
// A set of node numbers (OS indexes 0..1023) as a fixed array of words.
// Floor 0: a plain value that may lie in shared memory. It is not atomic;
// whoever shares one copies its words under a lock or a sequence.
#ifndef MEMTUNED_CORE_BASE_NODE_MASK_H_
#define MEMTUNED_CORE_BASE_NODE_MASK_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace memtuned {

// Invariants: bit n of the mask is bit n % 64 of words()[n / 64].
// Thread safety: as an integer array; writers need their own lock.
class NodeMask {
 public:
  static constexpr int kBits = 1024;
  static constexpr int kWords = kBits / 64;
  using Words = std::array<uint64_t, kWords>;

  constexpr NodeMask() = default;
  constexpr explicit NodeMask(const Words& words) : words_(words) {}

  // The mask of one node.
  static constexpr NodeMask Of(int nid) {
    NodeMask mask;
    mask.Set(nid);
    return mask;
  }
  // Every node number there can be.
  static constexpr NodeMask All() {
    NodeMask mask;
    mask.words_.fill(~uint64_t{0});
    return mask;
  }

  // A number outside 0..kBits-1 is in no mask: Set and Clear ignore it and
  // Test says false, so a scribbled index can never reach foreign memory.
  constexpr void Set(int nid) {
    if (InRange(nid)) words_[WordOf(nid)] |= BitOf(nid);
  }
  constexpr void Clear(int nid) {
    if (InRange(nid)) words_[WordOf(nid)] &= ~BitOf(nid);
  }
  constexpr bool Test(int nid) const {
    return InRange(nid) && (words_[WordOf(nid)] & BitOf(nid)) != 0;
  }
  constexpr void Reset() { words_.fill(0); }

  constexpr bool Any() const {
    for (uint64_t word : words_) {
      if (word != 0) return true;
    }
    return false;
  }
  constexpr int Count() const {
    int count = 0;
    for (uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  constexpr bool Intersects(const NodeMask& other) const {
    for (size_t i = 0; i < kWords; ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  // True when each node of `other` is in this mask too.
  constexpr bool Contains(const NodeMask& other) const {
    for (size_t i = 0; i < kWords; ++i) {
      if ((other.words_[i] & ~words_[i]) != 0) return false;
    }
    return true;
  }

  // Lowest member, -1 when empty.
  constexpr int First() const { return Next(-1); }
  // Lowest member above `nid`, -1 when there is none. A loop over all members:
  //   for (int n = mask.First(); n >= 0; n = mask.Next(n))
  constexpr int Next(int nid) const {
    if (nid >= kBits - 1) return -1;
    const int start = nid < 0 ? 0 : nid + 1;
    size_t i = WordOf(start);
    uint64_t word = words_[i] & (~uint64_t{0} << (start % 64));
    while (word == 0) {
      if (++i == kWords) return -1;
      word = words_[i];
    }
    return static_cast<int>(i) * 64 + std::countr_zero(word);
  }

  constexpr NodeMask& operator|=(const NodeMask& other) {
    for (size_t i = 0; i < kWords; ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr NodeMask& operator&=(const NodeMask& other) {
    for (size_t i = 0; i < kWords; ++i) words_[i] &= other.words_[i];
    return *this;
  }
  friend constexpr NodeMask operator|(NodeMask a, const NodeMask& b) {
    return a |= b;
  }
  friend constexpr NodeMask operator&(NodeMask a, const NodeMask& b) {
    return a &= b;
  }
  constexpr bool operator==(const NodeMask&) const = default;

  // The raw words, for copying to and from atomics in the segment.
  constexpr const Words& words() const { return words_; }

 private:
  static constexpr bool InRange(int nid) { return nid >= 0 && nid < kBits; }
  static constexpr size_t WordOf(int nid) {
    return static_cast<size_t>(nid) / 64;
  }
  static constexpr uint64_t BitOf(int nid) { return uint64_t{1} << (nid % 64); }

  Words words_{};
};

static_assert(sizeof(NodeMask) == 128);
static_assert(std::is_standard_layout_v<NodeMask>);
static_assert(std::is_trivially_copyable_v<NodeMask>);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_NODE_MASK_H_
