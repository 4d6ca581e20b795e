// SPDX-License-Identifier: Apache-2.0
// Which blocks this process has: for each page that heads one, its number
// among the process's blocks and how it is stamped.
#ifndef MEMTUNED_TESTS_TORTURE_HELD_BLOCKS_H_
#define MEMTUNED_TESTS_TORTURE_HELD_BLOCKS_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "tests/torture/stamp.h"

namespace memtuned::torture {

// Thread safety: any thread.
class HeldBlocks {
 public:
  // Memory is zero and untouched until a page's entry is used.
  explicit HeldBlocks(uint64_t pool_bytes)
      : entries_(static_cast<std::atomic<uint32_t>*>(std::calloc(
            pool_bytes / kPageBytes, sizeof(std::atomic<uint32_t>)))) {
    if (entries_ == nullptr) std::abort();
  }

  // An entry for a block this process just got; 0 is none.
  uint32_t NextEntry(bool whole) {
    return (next_.fetch_add(1) + 1) << 1 | (whole ? 1 : 0);
  }
  static bool IsWhole(uint32_t entry) { return (entry & 1) != 0; }

  // Returns: the entry before, 0 unless the process had the block already.
  uint32_t Put(uint64_t offset, uint32_t entry) {
    return entries_.get()[offset / kPageBytes].exchange(entry);
  }
  // Returns: the entry, 0 when the process does not have the block.
  uint32_t Take(uint64_t offset) { return Put(offset, 0); }

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::atomic<uint32_t>, FreeMemory> entries_;
  std::atomic<uint32_t> next_{0};
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_HELD_BLOCKS_H_
