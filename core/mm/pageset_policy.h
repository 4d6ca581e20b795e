// SPDX-License-Identifier: Apache-2.0
// How pageset limits are computed, and how a pageset refills and flushes: a
// small pure strategy. The kernel's eras by name, and our own. No shared
// memory, no locks: numbers in, numbers out. Floor 1.
//
// Sources: the kernel's documented behaviour, restated in core/README.md
// ("Policies"), which also has the test vectors' origin.
#ifndef MEMTUNED_CORE_MM_PAGESET_POLICY_H_
#define MEMTUNED_CORE_MM_PAGESET_POLICY_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/pfn.h"

namespace memtuned {

enum class PagesetPolicy : uint32_t {
  kFixed = 0,         // kernels up to 5.13: high = 6 x batch, order 0 only
  kWatermark = 1,     // 5.14 to 6.6: high from the low watermark, free_factor
  kAdaptive = 2,      // 6.7 to 6.15: high floats; free-high at factor x batch
  kAdaptiveHigh = 3,  // 6.16 on: free-high at batch + high_min/2
  kMemtuned = 4,      // ours
};
inline constexpr int kNumPolicies = 5;
const char* PolicyName(PagesetPolicy policy);
std::optional<PagesetPolicy> PolicyFromName(std::string_view name);

// What limits are a function of.
struct LimitInputs {
  PagesetPolicy policy = PagesetPolicy::kMemtuned;
  uint64_t managed_pages = 0;
  uint64_t watermark_low_pages = 0;  // with boost
  // CPUs of the zone's node; all online CPUs when it has none. Never 0 after
  // EffectiveCpus().
  int cpus = 1;
  uint32_t high_fraction = 0;   // 0: automatic; else >= 8
  double batch_factor = 1;      // 0.25..8
  double free_high_factor = 1;  // 1..64, in batches
  uint64_t page_size_bytes = kPageSizeBytes;
  // 1 MiB since 4.19; 512 KiB before.
  uint64_t batch_cap_bytes = 1u << 20;
};

// Pages. What one zone publishes to all its pagesets.
struct PagesetLimits {
  PagesetPolicy policy = PagesetPolicy::kMemtuned;
  uint32_t batch = 1;
  uint32_t high_min = 0;
  uint32_t high_max = 0;  // equal to high_min: high does not float
  // Free-high fires at this many consecutive pages freed (memtuned: or at
  // the floating high, if that is more). 0xffffffff: never.
  uint32_t free_high_threshold = kNil;
  uint32_t scale_max = 5;      // alloc_factor's and free_count's bound, 0..6
  bool chunked_flush = false;  // 6.19 on: at most a batch per hold
  bool operator==(const PagesetLimits&) const = default;
};

// min(M/1024, cap/P)/4 rounded to 2^n - 1; 0 for a zone too small for one.
uint32_t RawBatch(uint64_t managed_pages, uint64_t page_size_bytes,
                  uint64_t cap_bytes);
// CPUs that share a zone: those of its node, or all online ones when the node
// has none, at least 1.
int EffectiveCpus(int node_cpus, int online_cpus);
PagesetLimits ComputeLimits(const LimitInputs& inputs);
// Sizes M for which RawBatch gives `batch`: [first, last]; last is
// UINT64_MAX for the largest batch.
struct PageRange {
  uint64_t first = 0, last = 0;
};
PageRange ManagedPagesOfBatch(uint32_t batch, uint64_t page_size_bytes,
                              uint64_t cap_bytes);

// The part of a pageset a policy looks at.
struct PolicyState {
  uint32_t count = 0;       // pages held, all lists
  uint32_t high = 0;        // floating; 0 until first clamped
  uint32_t free_count = 0;  // pages freed in a row (free_factor in kWatermark)
  uint8_t alloc_factor = 0;
  bool previous_free_was_high_order = false;
  // The CPU's share of the last-level cache is above 3 batches
  // (FREE_HIGH_BATCH).
  bool large_cache = false;
};

// Zone conditions that shrink pagesets.
struct ZoneConditions {
  bool reclaim_active = false;  // background reclaim is working on the zone
  bool below_high = false;      // free pages fell below the high watermark
};

// A list of `order` is empty: how many blocks to fetch, at least 1. Clamps
// and grows state.high, moves alloc_factor.
uint32_t RefillBlocks(const PagesetLimits& limits, ZoneConditions zone,
                      int order, PolicyState& state);

struct FlushDecision {
  uint32_t pages = 0;             // 0: nothing to flush
  bool free_high = false;         // the cause; else count reached high
  bool high_orders_only = false;  // leave order 0 and the huge order alone
  uint32_t pages_per_hold = kNil;
};

// A block of `order` was just added (count includes it): bookkeeping that
// every free does. Returns: whether the free-high condition holds. State is a
// PolicyState or a pageset in shared memory with the same members.
template <typename State>
inline bool NoteFree(State& state, uint32_t count, uint32_t batch,
                     uint32_t free_high_threshold, uint32_t free_count_cap,
                     bool consecutive_only, int order) {
  state.alloc_factor >>= 1;
  bool free_high = false;
  if (order >= 1 && order <= kCostlyOrder) {
    free_high = state.free_count >= free_high_threshold &&
                (!consecutive_only || (state.previous_free_was_high_order &&
                                       (!state.large_cache || count >= batch)));
    state.previous_free_was_high_order = true;
  } else {
    state.previous_free_was_high_order = false;
  }
  if (state.free_count < free_count_cap) {
    state.free_count += static_cast<uint32_t>(uint64_t{1} << order);
  }
  return free_high;
}
// NoteFree's arguments, from limits and the floating high.
uint32_t FreeHighThreshold(const PagesetLimits& limits, uint32_t high);
uint32_t FreeCountCap(const PagesetLimits& limits);
inline bool ConsecutiveOnly(PagesetPolicy policy) {
  return policy != PagesetPolicy::kWatermark;
}

// After NoteFree: what to flush now. Clamps, grows or lowers state.high.
FlushDecision DecideFlush(const PagesetLimits& limits, ZoneConditions zone,
                          bool free_high, PolicyState& state);

// What the floating high of a pageset is after one tick of the statistics'
// clock, in which the kernel's 6.7 and later (decay_pcp_high) take back what a
// CPU needed once: down by an eighth, at most, but as far as the pages it holds
// allow, and by 2^scale_max batches of them at most. What is above it is to be
// flushed then. The same as state.high where high does not float.
uint32_t DecayedHigh(const PagesetLimits& limits, const PolicyState& state);

// Whether pagesets hold blocks of this order under `policy`.
bool PolicyCaches(PagesetPolicy policy, int order);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_PAGESET_POLICY_H_
