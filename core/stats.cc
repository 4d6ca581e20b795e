// SPDX-License-Identifier: Apache-2.0
// The table of statistics: one row a metric family, with how to read it from
// a Snapshot. Absent is not zero: a row gives no sample for what the snapshot
// does not have.
#include "core/stats.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace memtuned {
namespace {

std::string NumberText(int64_t number) { return std::to_string(number); }

StatLabels SubjectLabels(const Snapshot& s) { return {{"subject", s.subject}}; }

StatLabels ZoneLabels(const Snapshot& s, const ZoneSnapshot& zone) {
  return {{"subject", s.subject},
          {"node", NumberText(zone.node)},
          {"zone", zone.zone}};
}

StatLabels With(StatLabels labels, const char* key, std::string value) {
  labels.emplace_back(key, std::move(value));
  return labels;
}

// Readers of one member, as it is or times the page size.
template <auto Member>
void SubjectValue(const Snapshot& s, const StatSink& sink) {
  sink.value(SubjectLabels(s), static_cast<double>(s.*Member));
}

template <auto Member>
void ZoneValue(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    sink.value(ZoneLabels(s, zone), static_cast<double>(zone.*Member));
  }
}

template <auto Member>
void ZoneBytes(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    sink.value(ZoneLabels(s, zone), static_cast<double>(zone.*Member) *
                                        static_cast<double>(s.page_size_bytes));
  }
}

template <auto Member>
void ZoneLock(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    sink.value(ZoneLabels(s, zone), static_cast<double>(zone.lock.*Member));
  }
}

// One sample a map entry; the keys are from fixed lists of the subject.
template <auto Member, const char* kLabel>
void MapCounter(const Snapshot& s, const StatSink& sink) {
  for (const auto& [key, count] : s.*Member) {
    sink.value(With(SubjectLabels(s), kLabel, key), static_cast<double>(count));
  }
}

void ZoneWatermarks(const Snapshot& s, const StatSink& sink) {
  const auto page_size = static_cast<double>(s.page_size_bytes);
  for (const ZoneSnapshot& zone : s.zones) {
    const std::pair<const char*, uint64_t> levels[] = {
        {"min", zone.watermark_min_pages},
        {"low", zone.watermark_low_pages},
        {"high", zone.watermark_high_pages},
        {"promo", zone.watermark_promo_pages}};
    for (const auto& [level, pages] : levels) {
      sink.value(With(ZoneLabels(s, zone), "level", level),
                 static_cast<double>(pages) * page_size);
    }
  }
}

void ZoneFreeBlocks(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    for (int order = 0; order < kStatOrders; ++order) {
      sink.value(With(ZoneLabels(s, zone), "order", NumberText(order)),
                 static_cast<double>(zone.free_blocks[order]));
    }
  }
}

// A zone without free memory has none for the order: 1.
double UnusableRatio(const ZoneSnapshot& zone, int wanted_order) {
  double all_pages = 0;
  double usable_pages = 0;
  for (int order = 0; order < kStatOrders; ++order) {
    const double pages =
        static_cast<double>(zone.free_blocks[order]) * (1 << order);
    all_pages += pages;
    if (order >= wanted_order) usable_pages += pages;
  }
  return all_pages == 0 ? 1 : (all_pages - usable_pages) / all_pages;
}

void ZoneUnusable(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    for (const int order : {3, 9}) {
      sink.value(With(ZoneLabels(s, zone), "order", NumberText(order)),
                 UnusableRatio(zone, order));
    }
  }
}

void PagesetLimits(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    sink.value(With(ZoneLabels(s, zone), "limit", "high_min"), zone.high_min);
    sink.value(With(ZoneLabels(s, zone), "limit", "high_max"), zone.high_max);
  }
}

template <auto Min, auto Median, auto Max>
void PagesetSpread(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    sink.value(With(ZoneLabels(s, zone), "stat", "min"), zone.*Min);
    sink.value(With(ZoneLabels(s, zone), "stat", "median"), zone.*Median);
    sink.value(With(ZoneLabels(s, zone), "stat", "max"), zone.*Max);
  }
}

void LimitsStale(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    if (!zone.limits_stale.has_value()) continue;
    sink.value(ZoneLabels(s, zone), *zone.limits_stale ? 1 : 0);
  }
}

template <auto Member>
void ByFlushCause(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    for (int cause = 0; cause < static_cast<int>(FlushCause::kCount); ++cause) {
      sink.value(With(ZoneLabels(s, zone), "cause",
                      FlushCauseName(static_cast<FlushCause>(cause))),
                 static_cast<double>((zone.*Member)[cause]));
    }
  }
}

template <auto Member>
void ByOrderClass(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    for (int i = 0; i < kNumOrderClasses; ++i) {
      sink.value(With(ZoneLabels(s, zone), "order", OrderClassName(i)),
                 static_cast<double>((zone.*Member)[i]));
    }
  }
}

void LockWait(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    sink.histogram(ZoneLabels(s, zone), zone.lock.wait_buckets,
                   zone.lock.wait_seconds);
  }
}

void DepotBatches(const Snapshot& s, const StatSink& sink) {
  uint64_t in = 0;
  uint64_t out = 0;
  for (const ZoneSnapshot& zone : s.zones) {
    in += zone.depot_pushes;
    out += zone.depot_pops;
  }
  sink.value(With(SubjectLabels(s), "direction", "in"),
             static_cast<double>(in));
  sink.value(With(SubjectLabels(s), "direction", "out"),
             static_cast<double>(out));
}

void NumaPages(const Snapshot& s, const StatSink& sink) {
  for (const NodeSnapshot& node : s.nodes) {
    for (int event = 0; event < static_cast<int>(NumaEvent::kCount); ++event) {
      StatLabels labels = {
          {"subject", s.subject},
          {"node", NumberText(node.node)},
          {"event", NumaEventName(static_cast<NumaEvent>(event))}};
      sink.value(std::move(labels),
                 static_cast<double>(node.numa_pages[event]));
    }
  }
}

void PoolProcesses(const Snapshot& s, const StatSink& sink) {
  const std::pair<const char*, ProcessState> states[] = {
      {"running", ProcessState::kRunning},
      {"stopped", ProcessState::kStopped},
      {"reaping", ProcessState::kReaping}};
  for (const auto& [name, state] : states) {
    const auto wanted = state;
    const auto count = std::count_if(
        s.processes.begin(), s.processes.end(),
        [wanted](const ProcessSnapshot& p) { return p.state == wanted; });
    sink.value(With(SubjectLabels(s), "state", name),
               static_cast<double>(count));
  }
}

void LargestHolder(const Snapshot& s, const StatSink& sink) {
  uint64_t pages = 0;
  for (const ProcessSnapshot& process : s.processes) {
    pages = std::max(pages, process.allocated_pages);
  }
  sink.value(SubjectLabels(s), static_cast<double>(pages) *
                                   static_cast<double>(s.page_size_bytes));
}

// By order, not by process: processes come and go.
void AllocatedBytes(const Snapshot& s, const StatSink& sink) {
  std::array<double, kNumOrderClasses> pages{};
  for (const ProcessSnapshot& process : s.processes) {
    for (int order = 0; order < kStatOrders; ++order) {
      pages[static_cast<size_t>(OrderClass(order))] +=
          static_cast<double>(process.held_blocks[order]) * (1 << order);
    }
  }
  for (size_t i = 0; i < pages.size(); ++i) {
    sink.value(
        With(SubjectLabels(s), "order", OrderClassName(static_cast<int>(i))),
        pages[i] * static_cast<double>(s.page_size_bytes));
  }
}

void LockHolderStopped(const Snapshot& s, const StatSink& sink) {
  double seconds = 0;
  for (const ProcessSnapshot& process : s.processes) {
    for (const HeldLock& held : process.holds) {
      seconds = std::max(seconds, held.seconds);
    }
  }
  sink.value(SubjectLabels(s), seconds);
}

// "auto" and choices have no number: absent.
std::optional<double> NumberOf(const TunableValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*i);
  }
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::nullopt;
}

void TunableValues(const Snapshot& s, const StatSink& sink) {
  for (const TunableDef& def : TunableTable()) {
    const auto number = NumberOf(s.tunables[static_cast<size_t>(def.id)]);
    if (!number.has_value()) continue;
    sink.value(With(SubjectLabels(s), "tunable", def.name), *number);
  }
}

void TunableForeign(const Snapshot& s, const StatSink& sink) {
  for (const TunableDef& def : TunableTable()) {
    sink.value(With(SubjectLabels(s), "tunable", def.name),
               s.tunable_foreign[static_cast<size_t>(def.id)] ? 1 : 0);
  }
}

void PolicyInfo(const Snapshot& s, const StatSink& sink) {
  if (s.policy.empty()) return;
  sink.value(With(SubjectLabels(s), "policy", s.policy), 1);
}

template <auto Member>
void CpuPageset(const Snapshot& s, const StatSink& sink) {
  for (const ZoneSnapshot& zone : s.zones) {
    for (const PagesetSnapshot& pageset : zone.pagesets) {
      sink.value(With(ZoneLabels(s, zone), "cpu", NumberText(pageset.cpu)),
                 pageset.*Member);
    }
  }
}

constexpr char kTrigger[] = "trigger";
constexpr char kLock[] = "lock";
constexpr char kReason[] = "reason";

using Z = ZoneSnapshot;
constexpr StatType kCounter = StatType::kCounter;
constexpr StatType kGauge = StatType::kGauge;

constexpr StatDef kTable[] = {
    {"memtuned_zone_managed_bytes", kGauge,
     "Memory handed to the zone's allocator so far (zoneinfo: managed).", false,
     ZoneBytes<&Z::managed_pages>},
    {"memtuned_zone_free_bytes", kGauge,
     "Free memory, without pages in pagesets and depot (zoneinfo: pages "
     "free).",
     false, ZoneBytes<&Z::free_pages>},
    {"memtuned_zone_watermark_bytes", kGauge,
     "Watermark by level, boost included (zoneinfo: min, low, high, promo).",
     false, ZoneWatermarks},
    {"memtuned_zone_watermark_boost_bytes", kGauge,
     "Temporary raise of the watermarks (zoneinfo: boost).", false,
     ZoneBytes<&Z::watermark_boost_pages>},
    {"memtuned_zone_free_blocks", kGauge,
     "Free blocks of 2^order pages (a column of buddyinfo).", false,
     ZoneFreeBlocks},
    {"memtuned_zone_unusable_free_ratio", kGauge,
     "Share of free memory in blocks smaller than the order (debugfs "
     "extfrag: unusable_index / 1000).",
     false, ZoneUnusable},
    {"memtuned_pageset_batch_pages", kGauge,
     "Pages moved at once between a pageset and its zone (zoneinfo: batch).",
     false, ZoneValue<&Z::batch>},
    {"memtuned_pageset_limit_pages", kGauge,
     "Bounds between which a pageset's high floats (zoneinfo: high_min, "
     "high_max); equal under fixed limits.",
     false, PagesetLimits},
    {"memtuned_pageset_high_pages", kGauge,
     "Filling at which a pageset flushes, over CPUs, as its next operation "
     "will use it (zoneinfo: high).",
     false,
     PagesetSpread<&Z::pageset_high_min, &Z::pageset_high_median,
                   &Z::pageset_high_max>},
    {"memtuned_pageset_pages", kGauge,
     "Pages in a pageset, over CPUs (zoneinfo: count).", false,
     PagesetSpread<&Z::pageset_pages_min, &Z::pageset_pages_median,
                   &Z::pageset_pages_max>},
    {"memtuned_pageset_stored_bytes", kGauge,
     "Memory parked in the pagesets of all CPUs (zoneinfo: sum of count).",
     false, ZoneBytes<&Z::pageset_pages_sum>},
    {"memtuned_pageset_limits_stale", kGauge,
     "1 if the limits in force do not fit the managed pages; absent where the "
     "rule is unknown.",
     false, LimitsStale},
    {"memtuned_pageset_recalculations_total", kCounter,
     "Recalculations of pageset limits by what set them off.", false,
     MapCounter<&Snapshot::recalculations, kTrigger>},
    {"memtuned_pageset_refills_total", kCounter,
     "Times the zone lock was held to refill a pageset.", false,
     ZoneValue<&Z::refills>},
    {"memtuned_pageset_refilled_pages_total", kCounter,
     "Pages moved from the zone to pagesets; divided by refills: pages per "
     "refill.",
     false, ZoneValue<&Z::refilled_pages>},
    {"memtuned_pageset_flushes_total", kCounter,
     "Flushes of a pageset to its zone by cause.", false,
     ByFlushCause<&Z::flushes>},
    {"memtuned_pageset_flushed_pages_total", kCounter,
     "Pages moved from pagesets to the zone by cause.", false,
     ByFlushCause<&Z::flushed_pages>},
    {"memtuned_pageset_trylock_misses_total", kCounter,
     "Operations that found their pageset busy and went to the zone.", false,
     ZoneValue<&Z::trylock_misses>},
    {"memtuned_depot_stored_bytes", kGauge,
     "Memory in whole batches parked between pagesets and zone.", false,
     ZoneBytes<&Z::depot_pages>},
    {"memtuned_depot_batches_total", kCounter,
     "Whole batches moved into and out of depots without the zone lock.", false,
     DepotBatches},
    {"memtuned_zone_lock_acquisitions_total", kCounter,
     "Zone lock acquisitions.", false, ZoneLock<&LockStats::acquisitions>},
    {"memtuned_zone_lock_contended_total", kCounter,
     "Zone lock acquisitions that had to wait.", false,
     ZoneLock<&LockStats::contended>},
    {"memtuned_zone_lock_wait_seconds", StatType::kHistogram,
     "Time waited for a contended zone lock.", false, LockWait},
    {"memtuned_zone_lock_hold_pages_max", kGauge,
     "Most pages moved in one hold of the zone lock since the start.", false,
     ZoneValue<&Z::lock_hold_pages_max>},
    {"memtuned_lock_takeovers_total", kCounter,
     "Locks taken over from a dead owner by lock.", false,
     MapCounter<&Snapshot::lock_takeovers, kLock>},
    {"memtuned_allocations_total", kCounter,
     "Blocks allocated by class of order (vmstat: pgalloc_*, which counts "
     "pages).",
     false, ByOrderClass<&Z::allocations>},
    {"memtuned_frees_total", kCounter,
     "Blocks freed by class of order (vmstat: pgfree, which counts pages).",
     false, ByOrderClass<&Z::frees>},
    {"memtuned_allocation_failures_total", kCounter,
     "Allocations that returned nothing by reason.", false,
     MapCounter<&Snapshot::allocation_failures, kReason>},
    {"memtuned_refused_frees_total", kCounter,
     "Double, wild, wrong-order and foreign frees that were refused.", false,
     MapCounter<&Snapshot::refused_frees, kReason>},
    {"memtuned_numa_pages_total", kCounter,
     "Pages allocated by NUMA event (vmstat: numa_*).", false, NumaPages},
    {"memtuned_mems_allowed_retries_total", kCounter,
     "Allocations tried again because the allowed nodes changed under them.",
     false, SubjectValue<&Snapshot::mems_allowed_retries>},
    {"memtuned_pool_size_bytes", kGauge, "Size of the pool's memory.", false,
     SubjectValue<&Snapshot::size_bytes>},
    {"memtuned_pool_initialised_bytes", kGauge,
     "Memory initialised so far; below the size during deferred "
     "initialisation.",
     false, SubjectValue<&Snapshot::initialised_bytes>},
    {"memtuned_pool_processes", kGauge, "Attached processes by state.", false,
     PoolProcesses},
    {"memtuned_pool_observers", kGauge,
     "Connections of processes that attached to read only.", false,
     SubjectValue<&Snapshot::observers>},
    {"memtuned_refused_attaches_total", kCounter,
     "Processes that were not let into the pool by reason, since the daemon "
     "started.",
     false, MapCounter<&Snapshot::refused_attaches, kReason>},
    {"memtuned_pool_largest_holder_bytes", kGauge,
     "Memory allocated by the process that holds most.", false, LargestHolder},
    {"memtuned_pool_allocated_bytes", kGauge,
     "Memory that attached processes hold by class of order.", false,
     AllocatedBytes},
    {"memtuned_lock_holder_stopped_seconds", kGauge,
     "How long a stopped process holds a lock of the subject, the longest if "
     "several do; 0 if none does. `memtunectl processes` names it.",
     false, LockHolderStopped},
    {"memtuned_tunable_value", kGauge,
     "Effective value of a numeric tunable in its own unit, never to be "
     "aggregated; absent while auto.",
     false, TunableValues},
    {"memtuned_tunable_foreign", kGauge,
     "1 if the value is not the one memtuned last set.", false, TunableForeign},
    {"memtuned_pageset_policy_info", kGauge,
     "1 for the pageset policy in force.", false, PolicyInfo},
    {"memtuned_subject_generation", kGauge,
     "Number of the subject's last completed change.", false,
     SubjectValue<&Snapshot::generation>},
    {"memtuned_subject_ready", kGauge, "1 if the subject serves.", false,
     SubjectValue<&Snapshot::ready>},
    {"memtuned_subject_degraded", kGauge,
     "1 while a part of the subject cannot be used.", false,
     SubjectValue<&Snapshot::degraded>},
    {"memtuned_subject_write_locked", kGauge,
     "1 while every change is refused.", false,
     SubjectValue<&Snapshot::write_locked>},
    {"memtuned_sample_duration_seconds", kGauge,
     "Time it took to take the sample that this scrape shows.", false,
     SubjectValue<&Snapshot::duration_seconds>},
    {"memtuned_cpu_pageset_pages", kGauge,
     "Pages in one CPU's pageset; only pagesets used so far (zoneinfo: "
     "count).",
     true, CpuPageset<&PagesetSnapshot::pages>},
    {"memtuned_cpu_pageset_high_pages", kGauge,
     "Filling at which one CPU's pageset flushes (zoneinfo: high).", true,
     CpuPageset<&PagesetSnapshot::high_clamped>},
};

}  // namespace

const char* FlushCauseName(FlushCause cause) {
  static constexpr const char* kNames[] = {"high", "free_high", "drain",
                                           "decay"};
  static_assert(std::size(kNames) == static_cast<size_t>(FlushCause::kCount));
  return kNames[static_cast<size_t>(cause)];
}

int OrderClass(int order) {
  return order == 0 ? 0 : order <= 3 ? 1 : order <= 8 ? 2 : 3;
}

const char* OrderClassName(int order_class) {
  static constexpr const char* kNames[kNumOrderClasses] = {"0", "1_3", "4_8",
                                                           "9_10"};
  return kNames[order_class];
}

const char* NumaEventName(NumaEvent event) {
  static constexpr const char* kNames[] = {"hit",   "miss",  "foreign",
                                           "local", "other", "interleave"};
  static_assert(std::size(kNames) == static_cast<size_t>(NumaEvent::kCount));
  return kNames[static_cast<size_t>(event)];
}

std::span<const StatDef> StatTable() { return kTable; }

}  // namespace memtuned
