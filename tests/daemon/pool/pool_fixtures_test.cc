// SPDX-License-Identifier: Apache-2.0
// Every described machine at hand serves a pool: from each of its CPUs a page
// comes from the nearest memory, limits divide by no zero, nothing is lost.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/recalculate.h"
#include "daemon/host/topology_probe.h"
#include "tests/daemon/host/temp_dir.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_fixtures.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

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

// Returns: whether the machine serves a pool; else it is refused.
bool ServesOrIsRefused(const std::string& spec) {
  SCOPED_TRACE(spec);
  const auto topology = ProbeTopology(spec, ProbeOptions{});
  if (!topology.ok()) {
    ExpectRefusedWithReason(topology.status(), spec);
    return false;
  }
  Serve(*topology);
  return true;
}

class PoolFixturesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(FixturesRoot() / "topology")) {
      GTEST_SKIP() << "no topology fixtures at " << FixturesRoot()
                   << "; set MEMTUNED_FIXTURES to their directory";
    }
  }
};

TEST_F(PoolFixturesTest, EveryXmlServesAPoolOrIsRefusedWithAReason) {
  int served = 0;
  for (const auto& file : FixtureFiles("topology", ".xml")) {
    served += ServesOrIsRefused("xml:" + file.string()) ? 1 : 0;
  }
  EXPECT_GE(served, 20);
}

TEST_F(PoolFixturesTest, EveryTreeServesAPoolOrIsRefusedWithAReason) {
  int served = 0;
  for (const auto& archive : FixtureFiles("topology/fsroot", ".bz2")) {
    SCOPED_TRACE(archive.filename().string());
    const TempDir dir;
    const std::string tree = UnpackTree(archive, dir.path());
    ASSERT_NE(tree, "") << "needs tar and bzip2";
    served += ServesOrIsRefused("fsroot:" + tree) ? 1 : 0;
  }
  EXPECT_GE(served, 10);
}

}  // namespace
}  // namespace memtuned
