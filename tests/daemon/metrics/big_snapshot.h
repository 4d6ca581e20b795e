// SPDX-License-Identifier: Apache-2.0
// Snapshots of a described size for the metrics tests; every number is set so
// that every family has its samples.
#ifndef MEMTUNED_TESTS_DAEMON_METRICS_BIG_SNAPSHOT_H_
#define MEMTUNED_TESTS_DAEMON_METRICS_BIG_SNAPSHOT_H_

#include "core/stats.h"

namespace memtuned {

inline ZoneSnapshot BusyZone(int node, int cpus) {
  ZoneSnapshot zone;
  zone.node = node;
  zone.zone = "Normal";
  zone.present_pages = zone.managed_pages = 67108864;
  zone.free_pages = 12345678;
  zone.free_blocks.fill(1000);
  zone.cpus = cpus;
  zone.batch = 63;
  zone.high_min = zone.high_max = 378;
  zone.pageset_pages_sum = 300u * cpus;
  zone.limits_stale = true;
  zone.lock.acquisitions = 123456789012;
  zone.lock.wait_buckets.fill(77);
  zone.lock.wait_seconds = 12.25;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    PagesetSnapshot pageset;
    pageset.cpu = cpu;
    pageset.pages = 300;
    pageset.high = pageset.high_clamped = 378;
    zone.pagesets.push_back(pageset);
  }
  return zone;
}

// One zone a node; each CPU has a pageset in each zone.
inline Snapshot BigSnapshot(int nodes, int cpus) {
  Snapshot s;
  s.subject = "pools/default";
  s.policy = "memtuned";
  s.unix_seconds = 1000;
  for (int node = 0; node < nodes; ++node) {
    s.zones.push_back(BusyZone(node, cpus));
    NodeSnapshot numa;
    numa.node = node;
    s.nodes.push_back(numa);
  }
  for (const TunableDef& def : TunableTable()) {
    s.tunables[static_cast<size_t>(def.id)] = DefaultValue(def);
  }
  for (const char* trigger :
       {"start", "section", "hotplug", "tunable", "watermark", "request"}) {
    s.recalculations[trigger] = 1;
  }
  for (const char* reason :
       {"watermark", "mems_allowed", "order", "detached"}) {
    s.allocation_failures[reason] = 1;
  }
  for (const char* reason : {"double", "wild", "order", "foreign"}) {
    s.refused_frees[reason] = 1;
  }
  for (const char* lock : {"zone", "lru", "pageset", "tuning"}) {
    s.lock_takeovers[lock] = 1;
  }
  return s;
}

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_METRICS_BIG_SNAPSHOT_H_
