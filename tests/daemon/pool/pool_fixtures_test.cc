// SPDX-License-Identifier: Apache-2.0
// Every described machine at hand serves a pool: from each of its CPUs a page
// comes from the nearest memory, limits divide by no zero, nothing is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/recalculate.h"
#include "daemon/host/topology_probe.h"
#include "tests/support/test_segment.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

std::filesystem::path Fixtures() {
  if (const char* root = std::getenv("MEMTUNED_FIXTURES")) return root;
  const char* source = std::getenv("MEMTUNED_SOURCE_DIR");
  return std::filesystem::path(source != nullptr ? source : ".") / ".." /
         "shared" / "fixtures";
}

void Serve(const Topology& topology) {
  TestSegmentOptions options;
  options.topology = topology;
  options.low_watermarks = false;
  options.node_pages.clear();
  for (const TopologyNode& node : topology.nodes) {
    options.node_pages.push_back(node.memory_bytes > 0 ? 16384 : 0);
  }
  TestSegment pool(options);
  auto allocator = pool.MakeAllocator();
  const Mapping& m = pool.mapping();
  for (uint32_t zone = 0; zone < m.nr_zones; ++zone) {
    const PagesetLimits limits = pool.zone(zone).LimitsNow();
    EXPECT_GE(limits.batch, 1u);
    EXPECT_LE(limits.high_min, limits.high_max);
    EXPECT_GE(limits.high_min, 4 * limits.batch);
  }
  for (int cpu : topology.OnlineCpus()) {
    const CpuEntry& entry = m.cpu_table[cpu];
    ASSERT_LT(LoadRelaxed(entry.zone), m.nr_zones);
    const int home = topology.HomeNodeOf(cpu);
    ASSERT_GE(home, 0);
    EXPECT_EQ(static_cast<int>(LoadRelaxed(entry.node)),
              topology.nodes[static_cast<size_t>(home)].os_index);
  }
  std::vector<std::pair<Pfn, int>> held;
  for (int i = 0; i < 300; ++i) {
    const int order = i % 11;
    const Pfn pfn = allocator->Allocate(order);
    if (pfn.value == kNil) continue;
    held.emplace_back(pfn, order);
  }
  EXPECT_GT(held.size(), 30u);
  for (const auto& [pfn, order] : held) {
    EXPECT_EQ(allocator->Free(pfn, order), FreeResult::kFreed);
  }
  pool.DrainEverything();
  EXPECT_EQ(ZoneChecker(pool.segment()).Check(), "");
}

TEST(PoolFixturesTest, EveryMachineServesAPoolOrIsRefusedWithAReason) {
  const std::filesystem::path folder = Fixtures() / "topology";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no fixtures at " << folder
                 << "; set MEMTUNED_FIXTURES to where they are";
  }
  int served = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".xml") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto topology =
        ProbeTopology("xml:" + entry.path().string(), ProbeOptions{});
    if (!topology.ok()) {
      EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_GT(topology.status().message().size(), 20u);
      continue;
    }
    Serve(*topology);
    ++served;
  }
  EXPECT_GE(served, 20);
}

}  // namespace
}  // namespace memtuned
