// SPDX-License-Identifier: Apache-2.0
// Turns cached snapshots into Prometheus families by walking StatTable().
// Floor 4; never takes a snapshot, so a scrape costs allocating threads
// nothing.
#ifndef MEMTUNED_DAEMON_METRICS_SNAPSHOT_COLLECTOR_H_
#define MEMTUNED_DAEMON_METRICS_SNAPSHOT_COLLECTOR_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <vector>

#include "core/stats.h"

namespace memtuned {

// Gives the latest snapshot of each subject; one without a sample yet may be
// missing or null.
using SnapshotSource =
    std::function<std::vector<std::shared_ptr<const Snapshot>>()>;

// One family per row of StatTable() that has a sample, and the age of each
// sample.
//
// Thread safety: any thread, if the source is.
class SnapshotCollector : public prometheus::Collectable {
 public:
  // `unix_now` gives the time in seconds; tests set it.
  SnapshotCollector(SnapshotSource source, bool per_cpu,
                    std::function<double()> unix_now);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const SnapshotSource source_;
  const bool per_cpu_;
  const std::function<double()> unix_now_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_METRICS_SNAPSHOT_COLLECTOR_H_
