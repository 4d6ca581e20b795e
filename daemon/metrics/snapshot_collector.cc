// SPDX-License-Identifier: Apache-2.0
// One walk over the table of statistics per scrape.
#include "daemon/metrics/snapshot_collector.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace memtuned {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Bounds from here on are the histogram's last, +Inf.
constexpr double kUnbounded = 1e300;

MetricType TypeOf(StatType type) {
  switch (type) {
    case StatType::kCounter:
      return MetricType::Counter;
    case StatType::kHistogram:
      return MetricType::Histogram;
    case StatType::kGauge:
      break;
  }
  return MetricType::Gauge;
}

ClientMetric WithLabels(StatLabels labels) {
  ClientMetric metric;
  metric.label.reserve(labels.size());
  for (auto& label : labels) {
    metric.label.push_back({std::move(label.first), std::move(label.second)});
  }
  return metric;
}

ClientMetric::Histogram HistogramOf(std::span<const uint64_t> counts,
                                    double sum) {
  ClientMetric::Histogram histogram;
  histogram.sample_sum = sum;
  for (size_t i = 0; i < counts.size(); ++i) {
    histogram.sample_count += counts[i];
    const double bound = kWaitBucketBounds[i] < kUnbounded
                             ? kWaitBucketBounds[i]
                             : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  return histogram;
}

// The samples of one row over all snapshots.
MetricFamily ReadFamily(
    const StatDef& def,
    const std::vector<std::shared_ptr<const Snapshot>>& snapshots) {
  MetricFamily family;
  family.name = def.name;
  family.help = def.help;
  family.type = TypeOf(def.type);
  StatSink sink;
  sink.value = [&family](StatLabels labels, double value) {
    ClientMetric metric = WithLabels(std::move(labels));
    metric.counter.value = value;
    metric.gauge.value = value;
    family.metric.push_back(std::move(metric));
  };
  sink.histogram = [&family](StatLabels labels,
                             std::span<const uint64_t> counts, double sum) {
    ClientMetric metric = WithLabels(std::move(labels));
    metric.histogram = HistogramOf(counts, sum);
    family.metric.push_back(std::move(metric));
  };
  for (const auto& snapshot : snapshots) {
    if (snapshot != nullptr) def.read(*snapshot, sink);
  }
  return family;
}

}  // namespace

SnapshotCollector::SnapshotCollector(SnapshotSource source, bool per_cpu,
                                     std::function<double()> unix_now)
    : source_(std::move(source)),
      per_cpu_(per_cpu),
      unix_now_(std::move(unix_now)) {}

std::vector<MetricFamily> SnapshotCollector::Collect() const {
  const auto snapshots = source_();
  std::vector<MetricFamily> families;
  for (const StatDef& def : StatTable()) {
    if (def.per_cpu && !per_cpu_) continue;
    MetricFamily family = ReadFamily(def, snapshots);
    if (!family.metric.empty()) families.push_back(std::move(family));
  }

  MetricFamily age;
  age.name = "memtuned_sample_age_seconds";
  age.help = "Age of the sample that this scrape shows.";
  age.type = MetricType::Gauge;
  for (const auto& snapshot : snapshots) {
    if (snapshot == nullptr) continue;
    ClientMetric metric = WithLabels({{"subject", snapshot->subject}});
    // A clock that was set back must not give a negative age.
    metric.gauge.value = std::max(0.0, unix_now_() - snapshot->unix_seconds);
    age.metric.push_back(std::move(metric));
  }
  if (!age.metric.empty()) families.push_back(std::move(age));
  return families;
}

}  // namespace memtuned
