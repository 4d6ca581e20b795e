// SPDX-License-Identifier: Apache-2.0
// Snapshots as messages: memory in bytes, limits and flows in pages.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/names.h"

namespace memtuned {
namespace {

v1::ZoneState ToState(ZoneState state) {
  switch (state) {
    case ZoneState::kReady:
      return v1::ZONE_STATE_READY;
    case ZoneState::kInitialising:
      return v1::ZONE_STATE_INITIALISING;
    case ZoneState::kNotSetUp:
      return v1::ZONE_STATE_NOT_SET_UP;
    case ZoneState::kDegraded:
      return v1::ZONE_STATE_DEGRADED;
  }
  return v1::ZONE_STATE_UNSPECIFIED;
}

v1::ProcessState ToState(ProcessState state) {
  switch (state) {
    case ProcessState::kRunning:
      return v1::PROCESS_STATE_RUNNING;
    case ProcessState::kStopped:
      return v1::PROCESS_STATE_STOPPED;
    case ProcessState::kReaping:
      return v1::PROCESS_STATE_REAPING;
  }
  return v1::PROCESS_STATE_UNSPECIFIED;
}

// `counts` are per bucket over kWaitBucketBounds.
v1::Histogram MakeHistogram(std::span<const uint64_t> counts, double sum) {
  v1::Histogram histogram;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    cumulative += counts[i];
    v1::Bucket& bucket = *histogram.add_buckets();
    bucket.set_upper_bound(i + 1 == counts.size()
                               ? std::numeric_limits<double>::infinity()
                               : kWaitBucketBounds[i]);
    bucket.set_cumulative_count(static_cast<int64_t>(cumulative));
  }
  histogram.set_count(static_cast<int64_t>(cumulative));
  histogram.set_sum(sum);
  return histogram;
}

void FillLock(const ZoneSnapshot& zone, v1::LockStats& out) {
  out.set_acquisitions(static_cast<int64_t>(zone.lock.acquisitions));
  out.set_contended(static_cast<int64_t>(zone.lock.contended));
  out.set_wait_seconds(zone.lock.wait_seconds);
  *out.mutable_wait() =
      MakeHistogram(zone.lock.wait_buckets, zone.lock.wait_seconds);
  out.set_hold_pages_max(static_cast<int64_t>(zone.lock_hold_pages_max));
}

void FillPagesets(const ZoneSnapshot& zone, v1::PagesetSummary& out) {
  out.set_count(zone.cpus);
  out.set_pages_sum(static_cast<int64_t>(zone.pageset_pages_sum));
  out.set_batch(static_cast<int32_t>(zone.batch));
  out.set_high_min(static_cast<int32_t>(zone.high_min));
  out.set_high_max(static_cast<int32_t>(zone.high_max));
  out.mutable_pages()->set_min(static_cast<int32_t>(zone.pageset_pages_min));
  out.mutable_pages()->set_median(
      static_cast<int32_t>(zone.pageset_pages_median));
  out.mutable_pages()->set_max(static_cast<int32_t>(zone.pageset_pages_max));
  out.mutable_high()->set_min(static_cast<int32_t>(zone.pageset_high_min));
  out.mutable_high()->set_median(
      static_cast<int32_t>(zone.pageset_high_median));
  out.mutable_high()->set_max(static_cast<int32_t>(zone.pageset_high_max));
}

void FillLimits(const ZoneSnapshot& zone, v1::LimitsCheck& out) {
  if (!zone.limits_stale.has_value()) {
    out.set_state(v1::LIMITS_STATE_UNKNOWN);
    return;
  }
  out.set_state(*zone.limits_stale ? v1::LIMITS_STATE_STALE
                                   : v1::LIMITS_STATE_OK);
  out.set_expected_batch(static_cast<int32_t>(zone.expected_batch));
  out.set_expected_high_min(static_cast<int32_t>(zone.expected_high_min));
  out.set_expected_high_max(static_cast<int32_t>(zone.expected_high_max));
  if (*zone.limits_stale) {
    out.set_fits_min_pages(static_cast<int64_t>(zone.fits_min_pages));
    out.set_fits_max_pages(static_cast<int64_t>(zone.fits_max_pages));
  }
}

void FillFlows(const ZoneSnapshot& zone, v1::ZoneFlows& out) {
  out.set_refills(static_cast<int64_t>(zone.refills));
  out.set_refilled_pages(static_cast<int64_t>(zone.refilled_pages));
  for (size_t i = 0; i < zone.flushes.size(); ++i) {
    v1::FlushCount& row = *out.add_flushes();
    row.set_cause(FlushCauseName(static_cast<FlushCause>(i)));
    row.set_flushes(static_cast<int64_t>(zone.flushes[i]));
    row.set_pages(static_cast<int64_t>(zone.flushed_pages[i]));
  }
  out.set_trylock_misses(static_cast<int64_t>(zone.trylock_misses));
  out.set_depot_pushes(static_cast<int64_t>(zone.depot_pushes));
  out.set_depot_pops(static_cast<int64_t>(zone.depot_pops));
  for (int i = 0; i < kNumOrderClasses; ++i) {
    v1::OrderCount& row = *out.add_orders();
    row.set_order(OrderClassName(i));
    row.set_allocations(static_cast<int64_t>(zone.allocations[i]));
    row.set_frees(static_cast<int64_t>(zone.frees[i]));
  }
}

template <class Map>
void FillCounts(const std::map<std::string, uint64_t>& counts, Map& out) {
  for (const auto& [key, count] : counts) {
    out[key] = static_cast<int64_t>(count);
  }
}

void FillPool(const Snapshot& snapshot, v1::PoolStats& out) {
  out.set_size_bytes(static_cast<int64_t>(snapshot.size_bytes));
  out.set_initialised_bytes(static_cast<int64_t>(snapshot.initialised_bytes));
  FillCounts(snapshot.recalculations, *out.mutable_recalculations());
  FillCounts(snapshot.allocation_failures, *out.mutable_allocation_failures());
  FillCounts(snapshot.refused_frees, *out.mutable_refused_frees());
  out.set_mems_allowed_retries(
      static_cast<int64_t>(snapshot.mems_allowed_retries));
  FillCounts(snapshot.lock_takeovers, *out.mutable_lock_takeovers());
  const auto count = [&](ProcessState state) {
    return static_cast<int32_t>(std::count_if(
        snapshot.processes.begin(), snapshot.processes.end(),
        [&](const ProcessSnapshot& p) { return p.state == state; }));
  };
  out.set_processes_running(count(ProcessState::kRunning));
  out.set_processes_stopped(count(ProcessState::kStopped));
  out.set_processes_reaping(count(ProcessState::kReaping));
}

// By order, without the zeros at the end.
void FillBlocks(const std::array<uint64_t, kStatOrders>& blocks,
                google::protobuf::RepeatedField<int64_t>& out) {
  size_t used = blocks.size();
  while (used > 0 && blocks[used - 1] == 0) --used;
  for (size_t i = 0; i < used; ++i) out.Add(static_cast<int64_t>(blocks[i]));
}

v1::StatType ToType(StatType type) {
  switch (type) {
    case StatType::kCounter:
      return v1::STAT_TYPE_COUNTER;
    case StatType::kGauge:
      return v1::STAT_TYPE_GAUGE;
    case StatType::kHistogram:
      return v1::STAT_TYPE_HISTOGRAM;
  }
  return v1::STAT_TYPE_UNSPECIFIED;
}

v1::Stat StartStat(const StatDef& def, const StatLabels& labels) {
  v1::Stat stat;
  stat.set_name(def.name);
  stat.set_type(ToType(def.type));
  for (const auto& [key, value] : labels) (*stat.mutable_labels())[key] = value;
  return stat;
}

}  // namespace

double UnixNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

v1::SampleInfo MakeSampleInfo(const Snapshot& snapshot) {
  v1::SampleInfo info;
  *info.mutable_time() = ToTimestamp(snapshot.unix_seconds);
  *info.mutable_age() =
      ToDuration(std::max(0.0, UnixNow() - snapshot.unix_seconds));
  *info.mutable_duration() = ToDuration(snapshot.duration_seconds);
  info.set_subject(snapshot.subject);
  info.set_generation(snapshot.generation);
  info.set_etag(snapshot.etag);
  info.set_policy(snapshot.policy);
  return info;
}

v1::Zone ToProto(const Snapshot& snapshot, const ZoneSnapshot& zone) {
  const auto bytes = [&](uint64_t pages) {
    return static_cast<int64_t>(pages) * snapshot.page_size_bytes;
  };
  v1::Zone out;
  out.set_name(ZoneName(snapshot.subject, zone.node, zone.zone));
  out.set_node(zone.node);
  out.set_zone(zone.zone);
  out.set_state(ToState(zone.state));
  out.set_managed_bytes(bytes(zone.managed_pages));
  out.set_present_bytes(bytes(zone.present_pages));
  out.set_free_bytes(bytes(zone.free_pages));
  out.set_depot_bytes(bytes(zone.depot_pages));
  v1::Watermarks& marks = *out.mutable_watermarks();
  marks.set_min_bytes(bytes(zone.watermark_min_pages));
  marks.set_low_bytes(bytes(zone.watermark_low_pages));
  marks.set_high_bytes(bytes(zone.watermark_high_pages));
  marks.set_promo_bytes(bytes(zone.watermark_promo_pages));
  marks.set_boost_bytes(bytes(zone.watermark_boost_pages));
  FillPagesets(zone, *out.mutable_pagesets());
  for (const uint64_t blocks : zone.free_blocks) {
    out.add_free_blocks(static_cast<int64_t>(blocks));
  }
  FillLock(zone, *out.mutable_zone_lock());
  FillLimits(zone, *out.mutable_limits());
  FillFlows(zone, *out.mutable_flows());
  return out;
}

v1::Pageset ToProto(const Snapshot& snapshot, const ZoneSnapshot& zone,
                    const PagesetSnapshot& pageset) {
  v1::Pageset out;
  out.set_name(absl::StrCat(ZoneName(snapshot.subject, zone.node, zone.zone),
                            "/pagesets/", pageset.cpu));
  out.set_cpu(pageset.cpu);
  out.set_pages(static_cast<int32_t>(pageset.pages));
  out.set_batch(static_cast<int32_t>(zone.batch));
  out.set_high(static_cast<int32_t>(pageset.high));
  out.set_high_clamped(static_cast<int32_t>(pageset.high_clamped));
  out.set_high_min(static_cast<int32_t>(zone.high_min));
  out.set_high_max(static_cast<int32_t>(zone.high_max));
  size_t used = pageset.pages_by_order.size();
  while (used > 0 && pageset.pages_by_order[used - 1] == 0) --used;
  for (size_t i = 0; i < used; ++i) {
    out.add_pages_by_order(static_cast<int32_t>(pageset.pages_by_order[i]));
  }
  return out;
}

v1::Process ToProto(const Snapshot& snapshot, const ProcessSnapshot& process) {
  const auto bytes = [&](uint64_t pages) {
    return static_cast<int64_t>(pages) * snapshot.page_size_bytes;
  };
  v1::Process out;
  out.set_name(absl::StrCat(snapshot.subject, "/processes/", process.slot, "-",
                            process.generation));
  out.set_pid(process.pid);
  out.set_uid(process.uid);
  out.set_state(ToState(process.state));
  out.set_threads(process.threads);
  out.set_allocated_bytes(bytes(process.allocated_pages));
  *out.mutable_attach_time() = ToTimestamp(process.attached_unix_seconds);
  for (const int node : process.mems_allowed) out.add_mems_allowed(node);
  out.set_command(process.command);
  out.set_peak_bytes(bytes(process.peak_pages));
  if (process.limit_pages != 0) out.set_limit_bytes(bytes(process.limit_pages));
  out.set_own_limit(process.own_limit);
  FillBlocks(process.held_blocks, *out.mutable_held_blocks());
  if (process.active_unix_seconds > 0) {
    *out.mutable_active_time() = ToTimestamp(process.active_unix_seconds);
  }
  if (process.state == ProcessState::kStopped) {
    *out.mutable_stopped() = ToDuration(process.stopped_seconds);
  }
  for (const HeldLock& held : process.holds) {
    v1::HeldLock& row = *out.add_holds();
    row.set_lock(held.lock);
    row.set_where(held.where);
    *row.mutable_stopped() = ToDuration(held.seconds);
  }
  return out;
}

v1::NodeHoldings ToProto(const Snapshot& snapshot, const NodeHoldings& node) {
  const auto bytes = [&](uint64_t pages) {
    return static_cast<int64_t>(pages) * snapshot.page_size_bytes;
  };
  v1::NodeHoldings out;
  out.set_node(node.node);
  out.set_bytes(bytes(node.pages));
  out.set_purgeable_bytes(bytes(node.purgeable_pages));
  out.set_offered_bytes(bytes(node.offered_pages));
  FillBlocks(node.blocks, *out.mutable_held_blocks());
  return out;
}

void FillSubjectStats(const Snapshot& snapshot, v1::Snapshot& out) {
  out.set_name(snapshot.subject);
  out.set_page_size_bytes(static_cast<int32_t>(snapshot.page_size_bytes));
  out.set_ready(snapshot.ready);
  out.set_degraded(snapshot.degraded);
  out.set_degraded_reason(snapshot.degraded_reason);
  out.set_write_locked(snapshot.write_locked);
  for (const NodeSnapshot& node : snapshot.nodes) {
    v1::NodeStats& row = *out.add_nodes();
    row.set_name(NodeName(snapshot.subject, node.node));
    row.set_node(node.node);
    const auto pages = [&](NumaEvent event) {
      return static_cast<int64_t>(node.numa_pages[static_cast<int>(event)]);
    };
    row.mutable_numa()->set_hit_pages(pages(NumaEvent::kHit));
    row.mutable_numa()->set_miss_pages(pages(NumaEvent::kMiss));
    row.mutable_numa()->set_foreign_pages(pages(NumaEvent::kForeign));
    row.mutable_numa()->set_local_pages(pages(NumaEvent::kLocal));
    row.mutable_numa()->set_other_pages(pages(NumaEvent::kOther));
    row.mutable_numa()->set_interleave_pages(pages(NumaEvent::kInterleave));
  }
  if (snapshot.size_bytes > 0) FillPool(snapshot, *out.mutable_pool());
}

int64_t VisitStats(const Snapshot& snapshot, bool per_cpu, int64_t from,
                   const std::function<bool(v1::Stat)>& visit) {
  int64_t index = 0;
  int64_t refused = -1;
  const auto wanted = [&] { return index++ >= from && refused < 0; };
  const auto give = [&](v1::Stat stat) {
    if (!visit(std::move(stat))) refused = index - 1;
  };
  for (const StatDef& def : StatTable()) {
    if (def.per_cpu && !per_cpu) continue;
    StatSink sink;
    sink.value = [&](const StatLabels& labels, double value) {
      if (!wanted()) return;
      v1::Stat stat = StartStat(def, labels);
      stat.set_value(value);
      give(std::move(stat));
    };
    sink.histogram = [&](const StatLabels& labels,
                         std::span<const uint64_t> counts, double sum) {
      if (!wanted()) return;
      v1::Stat stat = StartStat(def, labels);
      *stat.mutable_histogram() = MakeHistogram(counts, sum);
      give(std::move(stat));
    };
    def.read(snapshot, sink);
    if (refused >= 0) break;
  }
  return refused;
}

}  // namespace memtuned
