// SPDX-License-Identifier: Apache-2.0
// Runs a sequence of allocations and frees of one thread through a real zone
// and pageset and reports what moved: the test vectors' harness.
#ifndef MEMTUNED_TESTS_CORE_MM_VECTOR_RUN_H_
#define MEMTUNED_TESTS_CORE_MM_VECTOR_RUN_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/test_segment.h"

namespace memtuned {

// An era as the vectors have it: b 63, high_min 530, high_max 98304.
struct Era {
  const char* name;
  PagesetLimits limits;
  bool operator==(const Era&) const = default;
};
inline constexpr uint32_t kVectorBatch = 63;
inline constexpr uint32_t kVectorHighMin = 530;
inline constexpr uint32_t kVectorHighMax = 98304;

PagesetLimits Limits(PagesetPolicy policy, uint32_t batch, uint32_t high_min,
                     uint32_t high_max, uint32_t threshold = kNil,
                     bool chunked = false);
Era Fixed742();                       // up to 5.13, stale limits
Era Fixed63378();                     // up to 5.13
Era Watermark();                      // 5.14 to 6.6
Era Adaptive();                       // 6.7 to 6.15
Era AdaptiveTimes(uint32_t batches);  // ... with the threshold of a patch
Era AdaptiveHigh();                   // 6.16 to 6.18
Era Chunked();                        // 6.19 on
Era Pinned252();                      // 6.19, high set to 252
Era Memtuned();

struct Moved {
  uint64_t refills = 0;
  uint64_t flushes = 0;  // of both kinds
  uint64_t free_high_flushes = 0;
  uint64_t holds = 0;        // zone lock acquisitions
  uint64_t in = 0, out = 0;  // pages, from and to the zone
  uint64_t left = 0;         // pages in the pageset
  uint64_t high = 0;         // floating
  uint64_t hold_pages_max = 0;
  uint64_t depot = 0;  // pages
  // Blocks of orders that this era's pagesets do not hold, one hold each.
  uint64_t direct_in = 0, direct_out = 0;  // pages

  uint64_t Pages() const { return in + out + direct_in + direct_out; }
  bool operator==(const Moved&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Moved& moved);

// One pinned thread's pool with one zone of 2^18 pages.
class VectorRun {
 public:
  // `large_cache`: the vectors' FREE_HIGH_BATCH.
  VectorRun(const Era& era, bool large_cache);

  void Allocate(int order, uint64_t blocks);
  // Last allocated first.
  void Free(int order, uint64_t blocks);
  // `times` x { allocate n; free n }.
  void Cycle(int order, uint64_t n, int times);
  // Blocks to free that never went through the pageset.
  void TakeFromZone(int order, uint64_t blocks);

  // As if just made, for another era: all blocks are back in the zone.
  void Restart(const Era& era);

  // Since the start, TakeFromZone left out.
  Moved Now();
  const PagesetShared& pageset() { return *pageset_; }
  TestSegment& pool() { return pool_; }
  Allocator& allocator() { return *allocator_; }

 private:
  PinnedToOneCpu pinned_;
  TestSegment pool_;
  std::unique_ptr<Allocator> allocator_;
  PagesetShared* pageset_;
  std::vector<Pfn> blocks_[kNumOrders];
  Moved Counters();

  Moved before_;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_MM_VECTOR_RUN_H_
