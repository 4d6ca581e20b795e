// SPDX-License-Identifier: Apache-2.0
// The table of statistics: names, units, and each row against a small
// snapshot written by hand.
#include "core/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/match.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

// "name{a=b,c=d}" of every sample of a snapshot.
using Samples = std::map<std::string, double>;

Samples Read(const Snapshot& snapshot) {
  Samples samples;
  for (const StatDef& def : StatTable()) {
    auto key = [&def](const StatLabels& labels) {
      std::string text = std::string(def.name) + "{";
      for (const auto& [name, value] : labels) {
        if (text.back() != '{') text += ",";
        text += name + "=" + value;
      }
      return text + "}";
    };
    StatSink sink;
    sink.value = [&](StatLabels labels, double value) {
      EXPECT_TRUE(samples.emplace(key(labels), value).second) << key(labels);
    };
    sink.histogram = [&](StatLabels labels, std::span<const uint64_t> counts,
                         double sum) {
      EXPECT_EQ(counts.size(), size_t{kNumWaitBuckets});
      samples[key(labels) + "_sum"] = sum;
      for (size_t i = 0; i < counts.size(); ++i) {
        samples[key(labels) + "_" + std::to_string(i)] =
            static_cast<double>(counts[i]);
      }
    };
    def.read(snapshot, sink);
  }
  return samples;
}

Snapshot OneZone() {
  Snapshot s;
  s.subject = "pools/default";
  ZoneSnapshot zone;
  zone.node = 1000;
  zone.zone = "Normal";
  s.zones.push_back(zone);
  return s;
}

const char* const kZone = "{subject=pools/default,node=1000,zone=Normal";

std::string InZone(const std::string& name, const std::string& more = "") {
  return name + kZone + (more.empty() ? "" : "," + more) + "}";
}

TEST(StatTableTest, NamesAreUniqueSnakeCaseWithOurPrefix) {
  std::set<std::string> names;
  const std::regex form("memtuned(_[a-z0-9]+)+");
  for (const StatDef& def : StatTable()) {
    EXPECT_TRUE(names.insert(def.name).second) << def.name;
    EXPECT_TRUE(std::regex_match(def.name, form)) << def.name;
  }
}

TEST(StatTableTest, CountersAndOnlyTheyEndInTotal) {
  for (const StatDef& def : StatTable()) {
    EXPECT_EQ(absl::EndsWith(def.name, "_total"),
              def.type == StatType::kCounter)
        << def.name;
  }
}

TEST(StatTableTest, UnitsAreBaseUnits) {
  for (const StatDef& def : StatTable()) {
    for (const char* unit : {"_kb", "_kib", "_mib", "_ms", "_ns", "_us",
                             "_milliseconds", "_percent", "_kilobytes"}) {
      EXPECT_FALSE(absl::EndsWith(def.name, unit) ||
                   absl::StrContains(def.name, std::string(unit) + "_"))
          << def.name;
    }
  }
}

TEST(StatTableTest, HelpIsOneLineThatEndsInAFullStop) {
  for (const StatDef& def : StatTable()) {
    const std::string help = def.help;
    EXPECT_EQ(help.back(), '.') << def.name;
    EXPECT_EQ(help.find('\n'), std::string::npos) << def.name;
  }
}

TEST(StatTableTest, PerCpuRowsAreMarkedAndNoOtherHasACpuLabel) {
  Snapshot s = OneZone();
  s.zones[0].pagesets.push_back({.cpu = 7, .pages = 3});

  for (const StatDef& def : StatTable()) {
    bool has_cpu = false;
    StatSink sink;
    sink.value = [&](StatLabels labels, double) {
      for (const auto& label : labels) has_cpu |= label.first == "cpu";
    };
    sink.histogram = [](StatLabels, std::span<const uint64_t>, double) {};
    def.read(s, sink);
    EXPECT_EQ(has_cpu, def.per_cpu) << def.name;
  }
}

TEST(StatTableTest, EveryRowStartsWithItsSubject) {
  Snapshot s = OneZone();
  s.subject = "pools/other";

  for (const auto& [key, value] : Read(s)) {
    EXPECT_THAT(key, HasSubstr("{subject=pools/other")) << value;
  }
}

TEST(StatTableTest, ZoneMemoryIsInBytes) {
  Snapshot s = OneZone();
  s.page_size_bytes = 16384;
  s.zones[0].managed_pages = 100;
  s.zones[0].free_pages = 60;
  s.zones[0].watermark_min_pages = 1;
  s.zones[0].watermark_promo_pages = 4;
  s.zones[0].pageset_pages_sum = 5;
  s.zones[0].depot_pages = 6;

  const Samples got = Read(s);

  EXPECT_EQ(got.at(InZone("memtuned_zone_managed_bytes")), 100 * 16384);
  EXPECT_EQ(got.at(InZone("memtuned_zone_free_bytes")), 60 * 16384);
  EXPECT_EQ(got.at(InZone("memtuned_zone_watermark_bytes", "level=min")),
            16384);
  EXPECT_EQ(got.at(InZone("memtuned_zone_watermark_bytes", "level=promo")),
            4 * 16384);
  EXPECT_EQ(got.at(InZone("memtuned_pageset_stored_bytes")), 5 * 16384);
  EXPECT_EQ(got.at(InZone("memtuned_depot_stored_bytes")), 6 * 16384);
}

TEST(StatTableTest, LimitsAndFillingsAreInPages) {
  Snapshot s = OneZone();
  ZoneSnapshot& zone = s.zones[0];
  zone.batch = 63;
  zone.high_min = 378;
  zone.high_max = 500;
  zone.pageset_high_median = 400;
  zone.pageset_pages_max = 41;

  const Samples got = Read(s);

  EXPECT_EQ(got.at(InZone("memtuned_pageset_batch_pages")), 63);
  EXPECT_EQ(got.at(InZone("memtuned_pageset_limit_pages", "limit=high_min")),
            378);
  EXPECT_EQ(got.at(InZone("memtuned_pageset_limit_pages", "limit=high_max")),
            500);
  EXPECT_EQ(got.at(InZone("memtuned_pageset_high_pages", "stat=median")), 400);
  EXPECT_EQ(got.at(InZone("memtuned_pageset_pages", "stat=max")), 41);
}

TEST(StatTableTest, UnusableRatioCountsSmallerBlocksByPages) {
  Snapshot s = OneZone();
  s.zones[0].free_blocks[0] = 8;
  s.zones[0].free_blocks[3] = 2;

  const Samples got = Read(s);

  const std::string name = "memtuned_zone_unusable_free_ratio";
  EXPECT_DOUBLE_EQ(got.at(InZone(name, "order=3")), 8.0 / 24);
  EXPECT_DOUBLE_EQ(got.at(InZone(name, "order=9")), 1);
}

TEST(StatTableTest, UnusableRatioOfAFullZoneIsOne) {
  const Samples got = Read(OneZone());

  EXPECT_EQ(got.at(InZone("memtuned_zone_unusable_free_ratio", "order=3")), 1);
}

TEST(StatTableTest, StaleLimitsAreAbsentWhenUnknown) {
  Snapshot s = OneZone();
  const std::string name = InZone("memtuned_pageset_limits_stale");

  EXPECT_EQ(Read(s).count(name), 0u);
  s.zones[0].limits_stale = false;
  EXPECT_EQ(Read(s).at(name), 0);
  s.zones[0].limits_stale = true;
  EXPECT_EQ(Read(s).at(name), 1);
}

TEST(StatTableTest, FlushesAreByCauseAndOrdersByClass) {
  Snapshot s = OneZone();
  s.zones[0].flushes = {1, 2, 3, 4};
  s.zones[0].flushed_pages = {10, 20, 30, 40};
  s.zones[0].allocations = {5, 6, 7, 8};
  s.zones[0].frees = {9, 0, 0, 11};

  const Samples got = Read(s);

  const std::string flushes = "memtuned_pageset_flushes_total";
  EXPECT_EQ(got.at(InZone(flushes, "cause=high")), 1);
  EXPECT_EQ(got.at(InZone(flushes, "cause=free_high")), 2);
  EXPECT_EQ(got.at(InZone(flushes, "cause=drain")), 3);
  EXPECT_EQ(got.at(InZone(flushes, "cause=decay")), 4);
  EXPECT_EQ(
      got.at(InZone("memtuned_pageset_flushed_pages_total", "cause=drain")),
      30);
  EXPECT_EQ(got.at(InZone("memtuned_allocations_total", "order=1_3")), 6);
  EXPECT_EQ(got.at(InZone("memtuned_frees_total", "order=9_10")), 11);
}

TEST(StatTableTest, LockCountsAndWaitsComeFromTheZoneLock) {
  Snapshot s = OneZone();
  LockStats& lock = s.zones[0].lock;
  lock.acquisitions = 100;
  lock.contended = 3;
  lock.wait_seconds = 0.5;
  lock.wait_buckets[2] = 3;
  s.zones[0].lock_hold_pages_max = 64;

  const Samples got = Read(s);

  EXPECT_EQ(got.at(InZone("memtuned_zone_lock_acquisitions_total")), 100);
  EXPECT_EQ(got.at(InZone("memtuned_zone_lock_contended_total")), 3);
  EXPECT_EQ(got.at(InZone("memtuned_zone_lock_wait_seconds") + "_sum"), 0.5);
  EXPECT_EQ(got.at(InZone("memtuned_zone_lock_wait_seconds") + "_2"), 3);
  EXPECT_EQ(got.at(InZone("memtuned_zone_lock_hold_pages_max")), 64);
}

TEST(StatTableTest, ProcessesAreCountedByStateAndNeverNamed) {
  Snapshot s = OneZone();
  s.processes.resize(2);
  s.processes[0].pid = 4711;
  s.processes[0].state = ProcessState::kStopped;
  s.processes[0].allocated_pages = 3;
  s.processes[0].command = "evil\"} 1";
  s.processes[1].pid = 4712;
  s.processes[1].allocated_pages = 9;

  const Samples got = Read(s);

  const std::string processes = "memtuned_pool_processes{subject=";
  EXPECT_EQ(got.at(processes + "pools/default,state=running}"), 1);
  EXPECT_EQ(got.at(processes + "pools/default,state=stopped}"), 1);
  EXPECT_EQ(got.at(processes + "pools/default,state=reaping}"), 0);
  EXPECT_EQ(got.at("memtuned_pool_largest_holder_bytes{subject=pools/"
                   "default}"),
            9 * 4096);
  for (const auto& [key, value] : got) {
    EXPECT_EQ(key.find("evil"), std::string::npos) << key;
    EXPECT_EQ(key.find("4711"), std::string::npos) << key << value;
  }
}

TEST(StatTableTest, TunablesShowNumbersOnly) {
  Snapshot s = OneZone();
  for (const TunableDef& def : TunableTable()) {
    s.tunables[static_cast<size_t>(def.id)] = DefaultValue(def);
  }
  s.tunable_foreign[1] = true;

  const Samples got = Read(s);

  auto key = [](const char* family, const char* tunable) {
    return std::string(family) + "{subject=pools/default,tunable=" + tunable +
           "}";
  };
  EXPECT_EQ(got.at(key("memtuned_tunable_value", "pageset.free_high_factor")),
            5);
  EXPECT_EQ(got.at(key("memtuned_tunable_value", "depot.high_fraction")), 32);
  EXPECT_EQ(
      got.count(key("memtuned_tunable_value", "watermark.min_free_kbytes")),
      0u);
  EXPECT_EQ(got.count(key("memtuned_tunable_value", "pageset.policy")), 0u);
  EXPECT_EQ(got.at(key("memtuned_tunable_foreign", "pageset.batch_factor")), 1);
}

TEST(StatTableTest, NumaEventsAreByNode) {
  Snapshot s = OneZone();
  s.nodes.push_back({.node = 1000, .numa_pages = {1, 2, 3, 4, 5, 6}});

  const Samples got = Read(s);

  const std::string numa =
      "memtuned_numa_pages_total{subject=pools/default,node=1000,event=";
  EXPECT_EQ(got.at(numa + "hit}"), 1);
  EXPECT_EQ(got.at(numa + "foreign}"), 3);
  EXPECT_EQ(got.at(numa + "interleave}"), 6);
}

TEST(StatTableTest, MapsBecomeOneSampleAKey) {
  Snapshot s = OneZone();
  s.recalculations["hotplug"] = 2;
  s.allocation_failures["watermark"] = 3;
  s.refused_frees["double"] = 4;
  s.lock_takeovers["zone"] = 5;
  s.refused_attaches["denied"] = 6;

  const Samples got = Read(s);

  const std::string subject = "{subject=pools/default,";
  EXPECT_EQ(got.at("memtuned_pageset_recalculations_total" + subject +
                   "trigger=hotplug}"),
            2);
  EXPECT_EQ(got.at("memtuned_allocation_failures_total" + subject +
                   "reason=watermark}"),
            3);
  EXPECT_EQ(got.at("memtuned_refused_frees_total" + subject + "reason=double}"),
            4);
  EXPECT_EQ(got.at("memtuned_lock_takeovers_total" + subject + "lock=zone}"),
            5);
  EXPECT_EQ(
      got.at("memtuned_refused_attaches_total" + subject + "reason=denied}"),
      6);
}

}  // namespace
}  // namespace memtuned
