// SPDX-License-Identifier: Apache-2.0
#include "core/mm/pageset_policy.h"

#include <algorithm>
#include <array>
#include <bit>

namespace memtuned {
namespace {

constexpr std::array<const char*, kNumPolicies> kNames = {
    "fixed", "watermark", "adaptive", "adaptive-high", "memtuned"};

uint32_t Clamp32(uint64_t pages) {
  return static_cast<uint32_t>(std::min<uint64_t>(pages, 0x7fffffff));
}

// clamp() of the kernel's kind: the lower bound wins when bounds cross.
uint32_t Clamp(uint32_t value, uint32_t low, uint32_t high) {
  return std::max(low, std::min(value, high));
}

uint32_t SubtractFloor(uint32_t value, uint32_t less, uint32_t floor) {
  return value > less ? std::max(value - less, floor) : floor;
}

// Up to 5.13: the fraction is not divided by CPUs and drags batch along.
void FixedLimits(const LimitInputs& in, uint32_t scaled_raw,
                 PagesetLimits& out) {
  if (in.high_fraction != 0) {
    constexpr uint32_t kMaxBatch = kPageShift * 8;  // 96
    out.high_min = Clamp32(in.managed_pages / in.high_fraction);
    out.batch = Clamp(out.high_min / 4, 1, kMaxBatch);
  } else {
    out.high_min = 6 * scaled_raw;
    out.batch = std::max(1u, scaled_raw);
  }
  out.high_max = out.high_min;
}

void DividedLimits(const LimitInputs& in, PagesetLimits& out) {
  const auto cpus = static_cast<uint64_t>(std::max(1, in.cpus));
  const uint32_t floor = 4 * out.batch;
  const uint64_t total = in.high_fraction != 0
                             ? in.managed_pages / in.high_fraction
                             : in.watermark_low_pages;
  out.high_min = std::max(Clamp32(total / cpus), floor);
  const bool floats =
      in.high_fraction == 0 && in.policy != PagesetPolicy::kWatermark;
  out.high_max = floats ? std::max(Clamp32(in.managed_pages / 8 / cpus), floor)
                        : out.high_min;
  // A low watermark above an eighth of the zone: never let the bounds cross.
  out.high_max = std::max(out.high_max, out.high_min);
}

// What memtuned moves at a time: 2^n - 1 becomes 2^n, one aligned block with
// nothing left over to split, and a full chunk when n is 6.
uint32_t OursBatch(uint32_t batch) {
  return std::has_single_bit(batch + 1) ? batch + 1 : batch;
}

uint32_t BatchTimes(uint32_t batch, double factor) {
  return Clamp32(static_cast<uint64_t>(batch * factor));
}

}  // namespace

const char* PolicyName(PagesetPolicy policy) {
  const auto index = static_cast<size_t>(policy);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<PagesetPolicy> PolicyFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<PagesetPolicy>(i);
  }
  return std::nullopt;
}

uint32_t RawBatch(uint64_t managed_pages, uint64_t page_size_bytes,
                  uint64_t cap_bytes) {
  const uint64_t quarter =
      std::min(managed_pages >> 10, cap_bytes / page_size_bytes) / 4;
  const uint64_t batch = std::max<uint64_t>(quarter, 1);
  return static_cast<uint32_t>(std::bit_floor(batch + batch / 2) - 1);
}

int EffectiveCpus(int node_cpus, int online_cpus) {
  return std::max(1, node_cpus > 0 ? node_cpus : online_cpus);
}

PageRange ManagedPagesOfBatch(uint32_t batch, uint64_t page_size_bytes,
                              uint64_t cap_bytes) {
  const uint64_t end = cap_bytes / page_size_bytes * 1024;
  const auto batch_at = [&](uint64_t pages) {
    return std::max(1u, RawBatch(pages, page_size_bytes, cap_bytes));
  };
  // batch_at grows with pages: find both edges by bisection.
  const auto first_above = [&](uint32_t limit) {
    uint64_t low = 0, high = end + 1;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      (batch_at(middle) > limit) ? high = middle : low = middle + 1;
    }
    return low;
  };
  PageRange range;
  range.first = batch <= 1 ? 0 : first_above(batch - 1);
  const uint64_t above = first_above(batch);
  range.last = above > end ? UINT64_MAX : above - 1;
  return range;
}

PagesetLimits ComputeLimits(const LimitInputs& in) {
  PagesetLimits out;
  out.policy = in.policy;
  const uint32_t raw =
      RawBatch(in.managed_pages, in.page_size_bytes, in.batch_cap_bytes);
  const uint32_t scaled = BatchTimes(raw, in.batch_factor);
  out.batch = std::max(1u, scaled);
  if (in.policy == PagesetPolicy::kFixed) {
    FixedLimits(in, scaled, out);
  } else {
    DividedLimits(in, out);
  }
  switch (in.policy) {
    case PagesetPolicy::kFixed:
      break;
    case PagesetPolicy::kWatermark:
      out.free_high_threshold = 1;  // free_factor above zero
      break;
    case PagesetPolicy::kAdaptive:
    case PagesetPolicy::kMemtuned:
      out.free_high_threshold =
          std::max(1u, BatchTimes(out.batch, in.free_high_factor));
      break;
    case PagesetPolicy::kAdaptiveHigh:
      out.free_high_threshold = out.batch + out.high_min / 2;
      break;
  }
  return out;
}

bool PolicyCaches(PagesetPolicy policy, int order) {
  if (policy == PagesetPolicy::kFixed) return order == 0;
  return order <= kCostlyOrder || order == kHugeOrder;
}

uint32_t FreeHighThreshold(const PagesetLimits& limits, uint32_t high) {
  if (limits.policy != PagesetPolicy::kMemtuned) {
    return limits.free_high_threshold;
  }
  return std::max(limits.free_high_threshold, high);
}

uint32_t FreeCountCap(const PagesetLimits& limits) {
  if (limits.policy == PagesetPolicy::kFixed ||
      limits.policy == PagesetPolicy::kWatermark) {
    return 0;  // free_count holds free_factor, which frees do not move
  }
  return limits.batch << limits.scale_max;
}

uint32_t RefillBlocks(const PagesetLimits& limits, ZoneConditions zone,
                      int order, PolicyState& state) {
  const uint32_t batch = limits.batch;
  state.high = Clamp(state.high, limits.high_min, limits.high_max);
  const bool floats = limits.high_min != limits.high_max && !zone.below_high;
  uint32_t pages = batch;
  switch (limits.policy) {
    case PagesetPolicy::kFixed:
      return batch;
    case PagesetPolicy::kWatermark:
      if (state.high < batch) return 1;
      break;
    case PagesetPolicy::kAdaptive:
    case PagesetPolicy::kAdaptiveHigh: {
      if (state.high < batch) return 1;
      if (order == 0) pages = batch << state.alloc_factor;
      if (floats) state.high = std::min(state.high + pages, limits.high_max);
      if (order == 0) {
        const uint32_t room =
            std::max(SubtractFloor(state.high, state.count + batch, 0), batch);
        if (pages <= room && state.alloc_factor < limits.scale_max) {
          ++state.alloc_factor;
        }
        pages = std::min(pages, room);
      }
      break;
    }
    case PagesetPolicy::kMemtuned:
      if (state.high < batch) return 1;
      if (floats) state.high = std::min(state.high + batch, limits.high_max);
      pages = OursBatch(batch);
      break;
  }
  return pages > 1 ? std::max(pages >> order, 2u) : 1;
}

namespace {

// nr_pcp_high: the limit this free is held against; may move state.high.
uint32_t LimitOfFree(const PagesetLimits& limits, ZoneConditions zone,
                     PolicyState& state) {
  const uint32_t batch = limits.batch;
  if (limits.policy == PagesetPolicy::kWatermark) {
    return zone.reclaim_active ? std::min(4 * batch, state.high) : state.high;
  }
  if (limits.policy == PagesetPolicy::kFixed) return state.high;
  if (zone.reclaim_active || zone.below_high) {
    if (limits.high_min == limits.high_max) {
      return zone.reclaim_active ? std::min(4 * batch, state.high) : state.high;
    }
    state.high = SubtractFloor(state.high, std::max(state.free_count, batch),
                               limits.high_min);
    return zone.reclaim_active ? std::min(4 * batch, state.high)
                               : std::max(state.count, limits.high_min);
  }
  if (limits.high_min == limits.high_max || state.count < state.high) {
    return state.high;
  }
  const uint32_t old_high = state.high;
  const uint32_t wanted = state.free_count + batch;
  if (state.high < wanted) {
    state.high = Clamp(wanted, limits.high_min, limits.high_max);
  }
  // The kernel's growth takes effect from the next free; ours at once.
  return limits.policy == PagesetPolicy::kMemtuned ? state.high : old_high;
}

// nr_pcp_free of an ordinary flush.
uint32_t PagesOfFlush(const PagesetLimits& limits, uint32_t limit,
                      PolicyState& state) {
  const uint32_t batch = limits.batch;
  switch (limits.policy) {
    case PagesetPolicy::kFixed:
      return batch;
    case PagesetPolicy::kMemtuned:
      return OursBatch(batch);
    case PagesetPolicy::kWatermark: {
      if (limit < batch) return 1;
      const uint32_t room = SubtractFloor(limit, batch, 0);
      const uint32_t pages = batch << std::min(state.free_count, 20u);
      if (pages < room) ++state.free_count;
      return Clamp(pages, batch, room);
    }
    default:
      if (limit < batch) return 1;
      return Clamp(state.free_count, batch, SubtractFloor(limit, batch, 0));
  }
}

}  // namespace

FlushDecision DecideFlush(const PagesetLimits& limits, ZoneConditions zone,
                          bool free_high, PolicyState& state) {
  FlushDecision decision;
  const uint32_t batch = limits.batch;
  const bool ours = limits.policy == PagesetPolicy::kMemtuned;
  state.high = Clamp(state.high, limits.high_min, limits.high_max);
  if (ours) {
    decision.pages_per_hold = kNil;  // 64 blocks, whatever their order
  } else if (limits.chunked_flush) {
    decision.pages_per_hold = batch;
  }
  if (free_high && state.high != 0) {
    decision.free_high = true;
    if (limits.policy == PagesetPolicy::kWatermark) {
      decision.pages = state.count;
      return decision;
    }
    const uint32_t step = batch << limits.scale_max;
    state.high = SubtractFloor(state.high, step, limits.high_min);
    decision.pages = std::min(state.count, step);
    if (ours) {
      decision.high_orders_only = true;
      state.free_count >>= 1;
    }
    return decision;
  }
  const uint32_t limit = LimitOfFree(limits, zone, state);
  if (state.count < limit) return decision;
  decision.pages = std::min(PagesOfFlush(limits, limit, state), state.count);
  return decision;
}

uint32_t DecayedHigh(const PagesetLimits& limits, const PolicyState& state) {
  if (state.high <= limits.high_min || limits.high_min == limits.high_max) {
    return state.high;
  }
  const uint32_t step = limits.batch << limits.scale_max;
  return std::max({SubtractFloor(state.count, step, 0),
                   state.high - state.high / 8, limits.high_min});
}

}  // namespace memtuned
