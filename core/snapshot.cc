// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot.h"

#include <algorithm>
#include <bit>

#include "core/mm/owners.h"
#include "core/process_accounts.h"
#include "core/recalculate.h"

namespace memtuned {
namespace {

uint64_t Sum(uint64_t sum, const Shared64& counter) {
  return sum + LoadRelaxed(counter);
}

// Blocks of a list, walking its deque no further than it claims to be.
uint64_t ListBlocks(const Mapping& m, const PagesetShared& p, size_t list) {
  uint64_t blocks = TopCount(LoadRelaxed(p.top[list]));
  const PagesetList& rest = p.lists[list];
  const auto count_of = [&](uint32_t chunk) -> uint32_t {
    if (chunk == kNoChunk || chunk >= m.nr_chunks) return 0;
    return std::min(LoadRelaxed(m.chunks[chunk].count), kChunkBlocks);
  };
  blocks += count_of(LoadRelaxed(rest.spare));
  uint32_t chunk = LoadRelaxed(rest.hot);
  for (uint32_t left = std::min(LoadRelaxed(rest.nr_deque), m.nr_chunks);
       left > 0 && chunk != kNoChunk && chunk < m.nr_chunks; --left) {
    blocks += count_of(chunk);
    chunk = LoadRelaxed(m.chunks[chunk].next);
  }
  return blocks;
}

PagesetSnapshot ReadPageset(const Mapping& m, const PagesetShared& p, int cpu,
                            const PagesetLimits& limits) {
  PagesetSnapshot snapshot;
  snapshot.cpu = cpu;
  snapshot.pages = LoadRelaxed(p.pages);
  snapshot.high = LoadRelaxed(p.high);
  snapshot.high_clamped =
      std::clamp(snapshot.high, limits.high_min, limits.high_max);
  for (int list = 0; list < kNumLists; ++list) {
    snapshot.pages_by_order[static_cast<size_t>(ListOrder(list))] +=
        static_cast<uint32_t>(ListBlocks(m, p, static_cast<size_t>(list))
                              << ListOrder(list));
  }
  return snapshot;
}

void AddCounters(const PagesetShared& p, ZoneSnapshot* zone,
                 NodeSnapshot* node) {
  zone->refills = Sum(zone->refills, p.refills);
  zone->refilled_pages = Sum(zone->refilled_pages, p.refilled_pages);
  for (size_t c = 0; c < kNumFlushCauses; ++c) {
    zone->flushes[c] = Sum(zone->flushes[c], p.flushes[c]);
    zone->flushed_pages[c] = Sum(zone->flushed_pages[c], p.flushed_pages[c]);
  }
  zone->trylock_misses = Sum(zone->trylock_misses, p.trylock_misses);
  uint64_t taken_pages = 0;
  const auto add_order = [&](int order, uint64_t taken, uint64_t given) {
    const auto order_class = static_cast<size_t>(OrderClass(order));
    zone->allocations[order_class] += taken;
    zone->frees[order_class] += given;
    taken_pages += taken << order;
  };
  for (int slot = 0; slot < kNumOrderSlots; ++slot) {
    const auto s = static_cast<size_t>(slot);
    add_order(ListOrder(slot * kNumPageTypes), LoadRelaxed(p.allocations[s]),
              LoadRelaxed(p.frees[s]));
  }
  for (int order = 0; order < kNumOrders; ++order) {
    const auto o = static_cast<size_t>(order);
    add_order(order, LoadRelaxed(p.direct_allocations[o]),
              LoadRelaxed(p.direct_frees[o]));
  }
  const auto event = [&](NumaEvent which) -> uint64_t& {
    return node->numa_pages[static_cast<size_t>(which)];
  };
  const uint64_t miss = LoadRelaxed(p.numa_miss);
  const uint64_t other = LoadRelaxed(p.numa_other);
  event(NumaEvent::kHit) += taken_pages - std::min(miss, taken_pages);
  event(NumaEvent::kMiss) += miss;
  event(NumaEvent::kForeign) += LoadRelaxed(p.numa_foreign);
  event(NumaEvent::kLocal) += taken_pages - std::min(other, taken_pages);
  event(NumaEvent::kOther) += other;
  event(NumaEvent::kInterleave) += LoadRelaxed(p.numa_interleave);
}

struct Spread {
  uint32_t min = 0, median = 0, max = 0;
};

Spread SpreadOf(std::vector<uint32_t>& values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *middle, *high};
}

void ReadPagesets(const Mapping& m, const Zone& zone,
                  const PagesetLimits& limits, bool full, ZoneSnapshot* out,
                  NodeSnapshot* node) {
  const ZoneShared& z = zone.shared();
  std::vector<uint32_t> pages, highs;
  for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
    const uint64_t bit = 1ull << (cpu % 64);
    const bool online = (LoadRelaxed(m.online_cpus[cpu / 64]) & bit) != 0;
    const bool used = (LoadRelaxed(z.used_cpus[cpu / 64]) & bit) != 0;
    if (!online && !used) continue;
    PagesetSnapshot one;
    one.cpu = static_cast<int>(cpu);
    one.high_clamped = limits.high_min;
    if (used) {
      const PagesetShared& p = *m.PagesetOf(zone.info().number, cpu);
      AddCounters(p, out, node);
      if (full) {
        one = ReadPageset(m, p, one.cpu, limits);
        out->pagesets.push_back(one);
      } else {
        one.pages = LoadRelaxed(p.pages);
        one.high_clamped =
            std::clamp(LoadRelaxed(p.high), limits.high_min, limits.high_max);
      }
    }
    out->pageset_pages_sum += one.pages;
    if (!online) continue;
    ++out->cpus;
    pages.push_back(one.pages);
    highs.push_back(one.high_clamped);
  }
  const Spread filling = SpreadOf(pages);
  out->pageset_pages_min = filling.min;
  out->pageset_pages_median = filling.median;
  out->pageset_pages_max = filling.max;
  const Spread high = SpreadOf(highs);
  out->pageset_high_min = high.min;
  out->pageset_high_median = high.median;
  out->pageset_high_max = high.max;
}

void ReadLock(const LockCounters& counters, LockStats* out) {
  out->acquisitions = LoadRelaxed(counters.acquisitions);
  out->contended = LoadRelaxed(counters.contended);
  out->wait_seconds = static_cast<double>(LoadRelaxed(counters.wait_ns)) * 1e-9;
  for (size_t i = 0; i < out->wait_buckets.size(); ++i) {
    out->wait_buckets[i] = LoadRelaxed(counters.wait_buckets[i]);
  }
}

void CompareLimits(const PagesetLimits& now, const PagesetLimits& expected,
                   bool plain_batch, ZoneSnapshot* out) {
  out->expected_batch = expected.batch;
  out->expected_high_min = expected.high_min;
  out->expected_high_max = expected.high_max;
  out->limits_stale = now.batch != expected.batch ||
                      now.high_min != expected.high_min ||
                      now.high_max != expected.high_max;
  if (!*out->limits_stale || !plain_batch) return;
  const PageRange fits =
      ManagedPagesOfBatch(now.batch, kPageSizeBytes, 1u << 20);
  out->fits_min_pages = fits.first;
  out->fits_max_pages = fits.last;
}

bool CountsContradict(const ZoneSnapshot& zone) {
  return zone.managed_pages > zone.present_pages ||
         zone.free_pages > zone.managed_pages;
}

ZoneSnapshot ReadZone(const Mapping& m, const Zone& zone,
                      const ZoneTargets& targets, bool plain_batch, bool full,
                      NodeSnapshot* node) {
  const ZoneShared& z = zone.shared();
  ZoneSnapshot out;
  out.node = static_cast<int>(zone.node());
  out.zone = ZoneKindName(zone.info().kind);
  out.present_pages = zone.info().present_pages;
  out.managed_pages = LoadRelaxed(z.managed_pages);
  out.free_pages = zone.FreePages();
  out.depot_pages = z.DepotPages();
  const Watermarks marks = zone.WatermarksNow();
  out.watermark_boost_pages = LoadRelaxed(z.watermark_boost);
  out.watermark_min_pages = marks.min + out.watermark_boost_pages;
  out.watermark_low_pages = marks.low + out.watermark_boost_pages;
  out.watermark_high_pages = marks.high + out.watermark_boost_pages;
  out.watermark_promo_pages = marks.promo + out.watermark_boost_pages;
  for (int order = 0; order < kNumOrders; ++order) {
    out.free_blocks[static_cast<size_t>(order)] = zone.FreeBlocks(order);
  }
  const PagesetLimits limits = zone.LimitsNow();
  out.batch = limits.batch;
  out.high_min = limits.high_min;
  out.high_max = limits.high_max;
  CompareLimits(limits, targets.limits, plain_batch, &out);
  ReadPagesets(m, zone, limits, full, &out, node);
  ReadLock(z.lock_counters, &out.lock);
  out.lock_hold_pages_max = LoadRelaxed(z.hold_pages_max);
  out.depot_pushes = LoadRelaxed(z.depot_pushes);
  out.depot_pops = LoadRelaxed(z.depot_pops);
  if (CountsContradict(out) || LoadRelaxed(z.degraded) != 0) {
    out.state = ZoneState::kDegraded;
  } else if (out.managed_pages < out.present_pages) {
    out.state = ZoneState::kInitialising;
  }
  return out;
}

// The first reason there is; each stays until the pool ends.
void ReadDegraded(const Segment& segment, Snapshot* out) {
  const auto note = [out](uint32_t value, const std::string& where) {
    const auto reason = static_cast<Degraded>(
        std::min(value, static_cast<uint32_t>(Degraded::kCount)));
    if (reason == Degraded::kNo || out->degraded) return;
    out->degraded = true;
    out->degraded_reason = where + DegradedReason(reason);
  };
  note(LoadRelaxed(segment.header().degraded), "");
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_zones; ++i) {
    note(LoadRelaxed(m.zones[i].degraded),
         "nodes/" + std::to_string(m.zone_info[i].node) + "/zones/" +
             ZoneKindName(m.zone_info[i].kind) + ": ");
  }
}

}  // namespace

Snapshot ReadSnapshot(Segment& segment, bool full) {
  const Mapping& m = segment.mapping();
  const SegmentHeader& h = segment.header();
  Snapshot out;
  out.generation = static_cast<int64_t>(LoadRelaxed(h.generation));
  out.page_size_bytes = kPageSizeBytes;
  const RecalculateInputs inputs = InputsNow(segment);
  out.policy = PolicyName(inputs.policy);
  out.ready = true;
  for (int i = 0; i < kNumTunables; ++i) {
    out.tunables[static_cast<size_t>(i)] =
        segment.Tunable(static_cast<TunableId>(i));
  }
  const std::vector<ZoneTargets> targets = ComputeTargets(segment, inputs);
  for (uint32_t zone = 0; zone < m.nr_zones; ++zone) {
    NodeSnapshot node;
    node.node = static_cast<int>(m.zone_info[zone].node);
    out.zones.push_back(ReadZone(m, segment.zone(zone), targets[zone],
                                 inputs.batch_factor == 1, full, &node));
    if (CountsContradict(out.zones.back()) && !segment.read_only()) {
      segment.zone(zone).shared().Degrade(Degraded::kCounts);
    }
    out.size_bytes += out.zones.back().present_pages * kPageSizeBytes;
    out.initialised_bytes += out.zones.back().managed_pages * kPageSizeBytes;
    out.nodes.push_back(node);
  }
  ReadDegraded(segment, &out);
  out.processes = ReadProcesses(segment);
  for (int i = 0; i < kNumTriggers; ++i) {
    out.recalculations[TriggerName(static_cast<RecalculateTrigger>(i))] =
        LoadRelaxed(h.recalculations[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < kNumFailureReasons; ++i) {
    out.allocation_failures[FailureReasonName(static_cast<FailureReason>(i))] =
        LoadRelaxed(h.failures[static_cast<size_t>(i)]);
  }
  for (int i = 1; i < kNumFreeResults; ++i) {
    const char* name = FreeResultName(static_cast<FreeResult>(i));
    if (name == nullptr) continue;
    out.refused_frees[name] =
        LoadRelaxed(h.refused_frees[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < kNumLockKinds; ++i) {
    out.lock_takeovers[LockKindName(static_cast<LockKind>(i))] =
        LoadRelaxed(h.lock_takeovers[static_cast<size_t>(i)]);
  }
  out.mems_allowed_retries = LoadRelaxed(h.mems_allowed_retries);
  return out;
}

}  // namespace memtuned
