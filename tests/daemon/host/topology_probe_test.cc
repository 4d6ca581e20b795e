// SPDX-License-Identifier: Apache-2.0
// hwloc's answers as topologies: this machine, descriptions, damaged files.
#include "daemon/host/topology_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/base/cpu_mask.h"
#include "tests/daemon/host/temp_dir.h"

namespace memtuned {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kGibibyte = int64_t{1} << 30;

Topology Probed(const std::string& spec, const ProbeOptions& options = {}) {
  absl::StatusOr<Topology> topology = ProbeTopology(spec, options);
  EXPECT_TRUE(topology.ok()) << topology.status();
  if (!topology.ok()) return Topology();
  EXPECT_TRUE(topology->Validate().ok()) << topology->Validate();
  EXPECT_EQ(topology->description, spec);
  return *topology;
}

std::string Refused(const std::string& spec) {
  const absl::Status status = ProbeTopology(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
  return std::string(status.message());
}

TEST(TopologyProbeTest, ReadsThisMachine) {
  const Topology topology = Probed("live");

  EXPECT_EQ(topology.source, TopologySource::kLive);
  EXPECT_GE(topology.OnlineCpus().size(), 1u);
  EXPECT_LE(static_cast<int64_t>(topology.OnlineCpus().size()),
            sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu : topology.OnlineCpus()) {
    ASSERT_GE(topology.HomeNodeOf(cpu), 0);
    EXPECT_GT(topology.nodes[topology.HomeNodeOf(cpu)].memory_bytes, 0);
  }
}

TEST(TopologyProbeTest, ListsPossibleCpusOfTheLiveMachineAsOffline) {
  const TempDir sys;
  sys.Write("devices/system/cpu/possible", "0-4000\n");
  ProbeOptions options;
  options.sys_root = sys.path();

  const Topology topology = Probed("live", options);

  EXPECT_EQ(topology.CpuNumberEnd(), 4001);
  EXPECT_EQ(topology.OnlineCpus().size() + topology.offline_cpus.size(), 4001u);
}

TEST(TopologyProbeTest, SaysWhenTheEnvironmentReplacesTheLiveMachine) {
  ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "node:3 pu:1", 1), 0);
  const Topology topology = Probed("live");
  unsetenv("HWLOC_SYNTHETIC");

  EXPECT_THAT(topology.warnings, Contains(HasSubstr("HWLOC_ variable")));
}

TEST(TopologyProbeTest, BuildsTheSeedMachine) {
  const Topology topology = Probed("synthetic:node:2(memory=256GiB) pu:128");

  EXPECT_EQ(topology.source, TopologySource::kSynthetic);
  ASSERT_EQ(topology.nodes.size(), 2u);
  for (const TopologyNode& node : topology.nodes) {
    EXPECT_EQ(node.memory_bytes, 256 * kGibibyte);
    EXPECT_EQ(node.cpus.size(), 128u);
  }
  EXPECT_THAT(topology.distances,
              ElementsAre(ElementsAre(10, 20), ElementsAre(20, 10)));
  EXPECT_THAT(topology.warnings, IsEmpty());
}

TEST(TopologyProbeTest, TakesHwlocsMemoryWhereNoneIsStated) {
  const Topology topology = Probed("synthetic:node:2 pu:4");

  EXPECT_EQ(topology.nodes[0].memory_bytes, kGibibyte);
  EXPECT_EQ(topology.nodes[1].memory_bytes, kGibibyte);
}

TEST(TopologyProbeTest, BuildsSparseNumbers) {
  const Topology topology =
      Probed("synthetic:node:2(indexes=0,1000) pu:2(indexes=0,3,8,4095)");

  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_EQ(topology.nodes[1].os_index, 1000);
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(8, 4095));
}

TEST(TopologyProbeTest, BuildsNodesWithoutCpusAndWithoutMemory) {
  const Topology topology =
      Probed("synthetic:pack:2 [numa(memory=0)] [numa(memory=4GiB)] pu:2");

  ASSERT_EQ(topology.nodes.size(), 4u);
  EXPECT_EQ(topology.nodes[0].memory_bytes, 0);
  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(topology.nodes[1].cpus, IsEmpty());
  EXPECT_EQ(topology.HomeNodeOf(0), 1);
  EXPECT_EQ(topology.HomeNodeOf(3), 3);
}

TEST(TopologyProbeTest, BuildsTheLargestMachines) {
  EXPECT_EQ(Probed("synthetic:node:256 pu:16").nodes.size(), 256u);
  EXPECT_EQ(Probed("synthetic:pack:64 core:32 pu:2").CpuNumberEnd(), 4096);
}

TEST(TopologyProbeTest, PassesOnWhatHwlocSaysOfABadDescription) {
  EXPECT_THAT(Refused("synthetic:foo:3"), HasSubstr("unknown object type"));
  EXPECT_THAT(Refused("synthetic:core:2"), HasSubstr("last level"));
  EXPECT_THAT(Refused("synthetic:node:2(memory=256XB) pu:1"),
              HasSubstr("'XB) pu:1'"));
}

TEST(TopologyProbeTest, RefusesNumbersThatHwlocTakes) {
  EXPECT_THAT(Refused("synthetic:node:2(indexes=0,1024) pu:1"),
              HasSubstr("node number 1024; allowed 0 to 1023"));
  EXPECT_THAT(Refused("synthetic:node:2(indexes=3,3) pu:1"),
              HasSubstr("two nodes with number 3"));
  EXPECT_THAT(Refused("synthetic:node:1 pu:2(indexes=0,4096)"),
              HasSubstr("CPU number 4096; allowed 0 to 4095"));
  EXPECT_THAT(Refused("synthetic:node:1 pu:2(indexes=5,5)"),
              HasSubstr("2 CPUs with 1 different numbers"));
  EXPECT_THAT(Refused("synthetic:node:1(memory=-1) pu:1"),
              HasSubstr("bytes of memory; at most"));
}

// libhwloc 2.9 runs into an assertion on a cpuset that begins with a comma.
TEST(TopologyProbeTest, SurvivesAFileThatCrashesLibhwloc) {
  const TempDir dir;
  const std::string sets =
      "nodeset=\"0x1\" complete_nodeset=\"0x1\" cpuset=\"0x1\"";
  const std::string path = dir.Write(
      "crash.xml", "<topology version=\"2.0\">\n<object type=\"Machine\" " +
                       sets + " complete_cpuset=\"0x1\" gp_index=\"1\">\n" +
                       "<object type=\"PU\" os_index=\"0\" " + sets +
                       " complete_cpuset=\",0x1\" gp_index=\"2\"/>\n" +
                       "</object>\n</topology>\n");

  EXPECT_THAT(Refused("xml:" + path),
              AnyOf(HasSubstr("libhwloc crashed"),
                    HasSubstr("libhwloc cannot load it")));
}

TEST(TopologyProbeTest, LeavesTheEnvironmentAlone) {
  const TempDir dir;
  dir.Write("sys/devices/system/cpu/online", "0\n");
  ASSERT_EQ(std::getenv("HWLOC_FSROOT"), nullptr);

  (void)ProbeTopology("fsroot:" + dir.path());

  EXPECT_EQ(std::getenv("HWLOC_FSROOT"), nullptr);
  EXPECT_EQ(std::getenv("HWLOC_COMPONENTS"), nullptr);
}

}  // namespace
}  // namespace memtuned
