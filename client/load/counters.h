// SPDX-License-Identifier: Apache-2.0
// A pool's own counters, summed over its zones and CPUs: what the load cost.
// Read from the segment as they are; nothing is locked, nothing written.
#ifndef MEMTUNED_CLIENT_LOAD_COUNTERS_H_
#define MEMTUNED_CLIENT_LOAD_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "core/segment.h"

namespace memtuned::load {

enum Counter : size_t {
  kZoneLockAcquisitions,
  kZoneLockContended,
  kZoneLockWaitNs,
  kRefills,
  kRefilledPages,
  kFlushesHigh,  // the four causes in FlushReason's order
  kFlushesFreeHigh,
  kFlushesDrain,
  kFlushesDecay,
  kFlushedPagesHigh,
  kFlushedPagesFreeHigh,
  kFlushedPagesDrain,
  kFlushedPagesDecay,
  kTrylockMisses,
  kDepotPushes,
  kDepotPops,
  kPagesetAllocations,  // blocks, not pages
  kPagesetFrees,
  kDirectAllocations,  // past the pageset, one zone-lock hold each
  kDirectFrees,
  kAllocationFailures,
  kRefusedFrees,
  kMemsAllowedRetries,
  kNumCounters,
};

// As in -o json.
inline constexpr std::array<const char*, kNumCounters> kCounterNames = {
    "zone_lock_acquisitions",
    "zone_lock_contended",
    "zone_lock_wait_ns",
    "refills",
    "refilled_pages",
    "flushes_high",
    "flushes_free_high",
    "flushes_drain",
    "flushes_decay",
    "flushed_pages_high",
    "flushed_pages_free_high",
    "flushed_pages_drain",
    "flushed_pages_decay",
    "trylock_misses",
    "depot_pushes",
    "depot_pops",
    "pageset_allocations",
    "pageset_frees",
    "direct_allocations",
    "direct_frees",
    "allocation_failures",
    "refused_frees",
    "mems_allowed_retries",
};

using PoolCounters = std::array<uint64_t, kNumCounters>;

PoolCounters ReadCounters(Segment& segment);

// later - earlier, of counters that only grow.
PoolCounters Delta(const PoolCounters& later, const PoolCounters& earlier);

// A copy that passes from one process to another.
// Thread safety: one writer; readers see each counter whole.
class SharedCounters {
 public:
  void Store(const PoolCounters& counters);
  PoolCounters Load() const;

 private:
  std::array<std::atomic<uint64_t>, kNumCounters> values_{};
};

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_COUNTERS_H_
