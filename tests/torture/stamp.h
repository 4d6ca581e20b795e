// SPDX-License-Identifier: Apache-2.0
// What a holder writes into its block, so that a page in two hands is seen:
// each copy of a stamp says whose block it is, where, how large, and which of
// the holder's. A worker that gets a block of another's overwrites some.
#ifndef MEMTUNED_TESTS_TORTURE_STAMP_H_
#define MEMTUNED_TESTS_TORTURE_STAMP_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace memtuned::torture {

inline constexpr size_t kPageBytes = 4096;

// The first bytes of each page are the holder's own: memtune-load's shape
// `fault` marks pages there.
inline constexpr size_t kHolderBytes = 32;

struct Stamp {
  uint64_t owner;     // worker's serial << 32 | pid
  uint64_t place;     // offset in the pool | order | kWhole
  uint64_t sequence;  // number of the block among the worker's
  uint64_t check;     // of the three; tells a stamp from other bytes

  // Set: fills the first and the last page; else one copy a page. The pages in
  // between have one copy each either way.
  static constexpr uint64_t kWhole = 16;

  // REQUIRES: `offset` is a page's, order 0..10.
  static Stamp Make(uint64_t owner, uint64_t offset, int order, bool whole,
                    uint64_t sequence);
  // The first copy in a block; IsStamp() when somebody stamped it.
  static Stamp Read(const char* block);

  bool IsStamp() const { return check == CheckWord(); }
  int order() const { return static_cast<int>(place & 15); }
  bool whole() const { return (place & kWhole) != 0; }
  uint64_t offset() const { return place & ~uint64_t{kPageBytes - 1}; }
  std::string Describe() const;

  void Write(char* block) const;
  // Returns: "" when each copy is as Write() left it, else the first that is
  // not, in words.
  std::string Check(const char* block) const;

  bool operator==(const Stamp&) const = default;

 private:
  uint64_t CheckWord() const;
  size_t CopiesIn(size_t page) const;
  bool HoldsPage(const char* copies, size_t nr_copies) const;
};
static_assert(sizeof(Stamp) == 32 && kHolderBytes % sizeof(Stamp) == 0);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_STAMP_H_
