// SPDX-License-Identifier: Apache-2.0
#include "client/load/counters.h"

#include <bit>

namespace memtuned::load {
namespace {

template <typename Array>
uint64_t Sum(const Array& counters) {
  uint64_t sum = 0;
  for (const auto& counter : counters) sum += LoadRelaxed(counter);
  return sum;
}

void AddPageset(const PagesetShared& pageset, PoolCounters* counters) {
  PoolCounters& c = *counters;
  c[kRefills] += LoadRelaxed(pageset.refills);
  c[kRefilledPages] += LoadRelaxed(pageset.refilled_pages);
  for (size_t cause = 0; cause < kNumFlushCauses; ++cause) {
    c[kFlushesHigh + cause] += LoadRelaxed(pageset.flushes[cause]);
    c[kFlushedPagesHigh + cause] += LoadRelaxed(pageset.flushed_pages[cause]);
  }
  c[kTrylockMisses] += LoadRelaxed(pageset.trylock_misses);
  c[kPagesetAllocations] += Sum(pageset.allocations);
  c[kPagesetFrees] += Sum(pageset.frees);
  c[kDirectAllocations] += Sum(pageset.direct_allocations);
  c[kDirectFrees] += Sum(pageset.direct_frees);
}

void AddZone(const Mapping& mapping, const ZoneShared& zone,
             PoolCounters* counters) {
  PoolCounters& c = *counters;
  c[kZoneLockAcquisitions] += LoadRelaxed(zone.lock_counters.acquisitions);
  c[kZoneLockContended] += LoadRelaxed(zone.lock_counters.contended);
  c[kZoneLockWaitNs] += LoadRelaxed(zone.lock_counters.wait_ns);
  c[kDepotPushes] += LoadRelaxed(zone.depot_pushes);
  c[kDepotPops] += LoadRelaxed(zone.depot_pops);
  for (uint32_t w = 0; w < zone.used_cpus.size(); ++w) {
    for (uint64_t used = LoadRelaxed(zone.used_cpus[w]); used != 0;
         used &= used - 1) {
      const auto cpu = w * 64 + static_cast<uint32_t>(std::countr_zero(used));
      const PagesetShared* pageset = mapping.PagesetOf(zone.number, cpu);
      if (pageset != nullptr) AddPageset(*pageset, counters);
    }
  }
}

}  // namespace

PoolCounters ReadCounters(Segment& segment) {
  PoolCounters counters = {};
  for (Zone& zone : segment.zones()) {
    AddZone(segment.mapping(), zone.shared(), &counters);
  }
  const SegmentHeader& header = segment.header();
  counters[kAllocationFailures] = Sum(header.failures);
  counters[kRefusedFrees] = Sum(header.refused_frees);
  counters[kMemsAllowedRetries] = LoadRelaxed(header.mems_allowed_retries);
  return counters;
}

PoolCounters Delta(const PoolCounters& later, const PoolCounters& earlier) {
  PoolCounters delta;
  for (size_t i = 0; i < delta.size(); ++i) delta[i] = later[i] - earlier[i];
  return delta;
}

void SharedCounters::Store(const PoolCounters& counters) {
  for (size_t i = 0; i < counters.size(); ++i) {
    values_[i].store(counters[i], std::memory_order_relaxed);
  }
}

PoolCounters SharedCounters::Load() const {
  PoolCounters counters;
  for (size_t i = 0; i < counters.size(); ++i) {
    counters[i] = values_[i].load(std::memory_order_relaxed);
  }
  return counters;
}

}  // namespace memtuned::load
