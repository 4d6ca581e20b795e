// SPDX-License-Identifier: Apache-2.0
#include "tests/core/mm/vector_run.h"

#include "core/base/check.h"
#include "core/mm/pageset.h"

namespace memtuned {

PagesetLimits Limits(PagesetPolicy policy, uint32_t batch, uint32_t high_min,
                     uint32_t high_max, uint32_t threshold, bool chunked) {
  PagesetLimits limits;
  limits.policy = policy;
  limits.batch = batch;
  limits.high_min = high_min;
  limits.high_max = high_max;
  limits.free_high_threshold = threshold;
  limits.scale_max = 5;
  limits.chunked_flush = chunked;
  return limits;
}

Era Fixed742() {
  return {"fixed 7/42", Limits(PagesetPolicy::kFixed, 7, 42, 42)};
}
Era Fixed63378() {
  return {"fixed 63/378", Limits(PagesetPolicy::kFixed, 63, 378, 378)};
}
Era Watermark() {
  return {"watermark", Limits(PagesetPolicy::kWatermark, kVectorBatch,
                              kVectorHighMin, kVectorHighMin, 1)};
}
Era AdaptiveTimes(uint32_t batches) {
  return {"adaptive",
          Limits(PagesetPolicy::kAdaptive, kVectorBatch, kVectorHighMin,
                 kVectorHighMax, batches * kVectorBatch)};
}
Era Adaptive() { return AdaptiveTimes(1); }
Era AdaptiveHigh() {
  return {"adaptive-high",
          Limits(PagesetPolicy::kAdaptiveHigh, kVectorBatch, kVectorHighMin,
                 kVectorHighMax, kVectorBatch + kVectorHighMin / 2)};
}
Era Chunked() {
  Era era = AdaptiveHigh();
  era.name = "adaptive-high, chunked";
  era.limits.chunked_flush = true;
  return era;
}
Era Pinned252() {
  return {"adaptive-high, chunked, 252",
          Limits(PagesetPolicy::kAdaptiveHigh, kVectorBatch, 252, 252,
                 kVectorBatch + 126, true)};
}
Era Memtuned() {
  return {"memtuned", Limits(PagesetPolicy::kMemtuned, kVectorBatch,
                             kVectorHighMin, kVectorHighMax, kVectorBatch)};
}

std::ostream& operator<<(std::ostream& out, const Moved& m) {
  return out << "refills " << m.refills << " flushes " << m.flushes
             << " free-high " << m.free_high_flushes << " holds " << m.holds
             << " in " << m.in << " out " << m.out << " left " << m.left
             << " high " << m.high << " most in a hold " << m.hold_pages_max
             << " depot " << m.depot;
}

VectorRun::VectorRun(const Era& era, bool large_cache)
    : pool_({.node_pages = {8 * kPagesPerSection},
             .llc_pages_per_cpu = large_cache ? 4096u : 1u}),
      allocator_(pool_.MakeAllocator()),
      pageset_(&pool_.PagesetHere()) {
  pool_.zone().PublishWatermarks(Watermarks{});
  Store(pool_.zone().shared().depot_max_pages, uint64_t{0});
  Restart(era);
}

void VectorRun::Restart(const Era& era) {
  for (int order = 0; order < kNumOrders; ++order) {
    Free(order, blocks_[order].size());
  }
  pool_.Publish(era.limits);
  pool_.ResetPagesetHere();
  Store(pool_.zone().shared().hold_pages_max, uint64_t{0});
  before_ = Counters();
}

void VectorRun::Allocate(int order, uint64_t blocks) {
  for (uint64_t i = 0; i < blocks; ++i) {
    const Pfn pfn = allocator_->Allocate(order);
    CHECK(pfn.value != kNil);
    blocks_[order].push_back(pfn);
  }
}

void VectorRun::Free(int order, uint64_t blocks) {
  for (uint64_t i = 0; i < blocks; ++i) {
    CHECK(!blocks_[order].empty());
    CHECK(allocator_->Free(blocks_[order].back(), order) == FreeResult::kFreed);
    blocks_[order].pop_back();
  }
}

void VectorRun::Cycle(int order, uint64_t n, int times) {
  for (int i = 0; i < times; ++i) {
    Allocate(order, n);
    Free(order, n);
  }
}

void VectorRun::TakeFromZone(int order, uint64_t blocks) {
  Zone& zone = pool_.zone();
  zone.lock().Lock(kCreatorOwner);
  for (uint64_t i = 0; i < blocks; ++i) {
    const Pfn pfn =
        zone.TakeBlockLocked(order, PageType::kOrdinary, allocator_->owner());
    CHECK(pfn.value != kNil);
    blocks_[order].push_back(pfn);
  }
  Store(zone.shared().intent.what, kNil);
  zone.lock().Unlock();
}

Moved VectorRun::Counters() {
  Moved moved;
  moved.refills = LoadRelaxed(pageset_->refills);
  for (size_t cause = 0; cause < kNumFlushCauses; ++cause) {
    moved.flushes += LoadRelaxed(pageset_->flushes[cause]);
    moved.out += LoadRelaxed(pageset_->flushed_pages[cause]);
  }
  moved.free_high_flushes = LoadRelaxed(
      pageset_->flushes[static_cast<size_t>(FlushReason::kFreeHigh)]);
  moved.in = LoadRelaxed(pageset_->refilled_pages);
  moved.holds = LoadRelaxed(pool_.zone().shared().lock_counters.acquisitions);
  for (size_t order = 0; order < kNumOrders; ++order) {
    moved.direct_in += LoadRelaxed(pageset_->direct_allocations[order])
                       << order;
    moved.direct_out += LoadRelaxed(pageset_->direct_frees[order]) << order;
  }
  return moved;
}

Moved VectorRun::Now() {
  Moved moved = Counters();
  moved.refills -= before_.refills;
  moved.flushes -= before_.flushes;
  moved.free_high_flushes -= before_.free_high_flushes;
  moved.in -= before_.in;
  moved.out -= before_.out;
  moved.holds -= before_.holds;
  moved.direct_in -= before_.direct_in;
  moved.direct_out -= before_.direct_out;
  moved.left = LoadRelaxed(pageset_->pages);
  moved.high = LoadRelaxed(pageset_->high);
  moved.hold_pages_max = LoadRelaxed(pool_.zone().shared().hold_pages_max);
  moved.depot = pool_.zone().shared().DepotPages();
  return moved;
}

}  // namespace memtuned
