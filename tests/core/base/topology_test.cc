// SPDX-License-Identifier: Apache-2.0
// Topology's answers on machines with odd nodes, and its rules.
#include "core/base/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace memtuned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

// Two nodes, 0 and 1000, with CPUs 0-1 and 2-3.
Topology TwoNodes() {
  Topology topology;
  topology.nodes = {{0, kGiB, {0, 1}, {0, 1}}, {1000, kGiB, {2, 3}, {2, 3}}};
  topology.distances = {{10, 20}, {20, 10}};
  return topology;
}

std::string Broken(const Topology& topology) {
  const absl::Status status = topology.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(TopologyTest, FindsANodeByItsNumberNotItsPosition) {
  const Topology topology = TwoNodes();

  EXPECT_EQ(topology.NodeIndexOf(1000), 1);
  EXPECT_EQ(topology.NodeIndexOf(1), -1);
  EXPECT_TRUE(topology.Validate().ok());
}

TEST(TopologyTest, ListsAllOnlineCpusAscending) {
  Topology topology = TwoNodes();
  topology.nodes[0].cpus = {4, 5};
  topology.homeless_cpus = {1};
  topology.offline_cpus = {9};

  EXPECT_THAT(topology.OnlineCpus(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(topology.CpuNumberEnd(), 10);
}

TEST(TopologyTest, ServesACpuFromItsOwnNode) {
  const Topology topology = TwoNodes();

  EXPECT_EQ(topology.HomeNodeOf(1), 0);
  EXPECT_EQ(topology.HomeNodeOf(2), 1);
}

TEST(TopologyTest, ServesCpusOfAMemorylessNodeFromTheNearest) {
  Topology topology;
  topology.nodes = {{0, kGiB, {0}, {0}},
                    {1, 0, {1}, {1}},
                    {2, kGiB, {2}, {2}},
                    {3, kGiB, {3}, {3}}};
  topology.distances = {
      {10, 21, 31, 31}, {31, 10, 21, 21}, {31, 21, 10, 31}, {31, 21, 31, 10}};
  ASSERT_TRUE(topology.Validate().ok());

  EXPECT_EQ(topology.HomeNodeOf(1), 2);

  topology.distances[1] = {15, 10, 21, 21};
  EXPECT_EQ(topology.HomeNodeOf(1), 0);
}

TEST(TopologyTest, PrefersTheNodeNearTheCpuAtEqualDistance) {
  Topology topology;
  topology.nodes = {{0, kGiB, {0}, {0}}, {1, 0, {1}, {1}}, {2, kGiB, {}, {1}}};
  topology.distances = {{10, 20, 20}, {20, 10, 20}, {20, 20, 10}};

  EXPECT_EQ(topology.HomeNodeOf(1), 2);
}

TEST(TopologyTest, ServesAHomelessCpuFromTheNodeItIsNearTo) {
  Topology topology = TwoNodes();
  topology.homeless_cpus = {7, 8};
  topology.nodes[1].near_cpus = {2, 3, 7};

  EXPECT_EQ(topology.HomeNodeOf(7), 1);
  EXPECT_EQ(topology.HomeNodeOf(8), 0);
}

TEST(TopologyTest, PrefersTheMoreSpecificOfTwoNearNodes) {
  Topology topology = TwoNodes();
  topology.homeless_cpus = {7};
  topology.nodes[0].near_cpus = {0, 1, 2, 3, 7};
  topology.nodes[1].near_cpus = {2, 3, 7};

  EXPECT_EQ(topology.HomeNodeOf(7), 1);
}

TEST(TopologyTest, NeverServesFromANodeWithoutMemory) {
  Topology topology = TwoNodes();
  topology.nodes[0].memory_bytes = 0;
  EXPECT_EQ(topology.HomeNodeOf(0), 1);
  EXPECT_EQ(topology.HomeNodeOf(4000), 1);

  topology.nodes[1].memory_bytes = 0;
  EXPECT_EQ(topology.HomeNodeOf(0), -1);
}

TEST(TopologyTest, AcceptsNodesWithoutCpusOrMemory) {
  Topology topology = TwoNodes();
  topology.nodes[0].memory_bytes = 0;
  topology.nodes[1].cpus.clear();

  EXPECT_TRUE(topology.Validate().ok());
}

TEST(TopologyTest, AcceptsTheHighestNumbers) {
  Topology topology = TwoNodes();
  topology.nodes[1].os_index = kMaxNodeNumber;
  topology.nodes[1].cpus = {kMaxCpuNumber};

  EXPECT_TRUE(topology.Validate().ok());
  EXPECT_EQ(topology.CpuNumberEnd(), kMaxCpuNumber + 1);
}

TEST(TopologyTest, RefusesTooFewOrTooManyNodes) {
  Topology topology = TwoNodes();
  topology.nodes.clear();
  EXPECT_THAT(Broken(topology), HasSubstr("0 nodes; allowed 1 to 256"));

  for (int i = 0; i <= kMaxNodes; ++i) topology.nodes.push_back({i, 1, {}, {}});
  EXPECT_THAT(Broken(topology), HasSubstr("257 nodes"));
}

TEST(TopologyTest, RefusesNodeNumbersOutOfRangeOrOrder) {
  Topology topology = TwoNodes();
  topology.nodes[1].os_index = kMaxNodeNumber + 1;
  EXPECT_THAT(Broken(topology), HasSubstr("node number 1024"));

  topology.nodes[1].os_index = 0;
  EXPECT_THAT(Broken(topology), HasSubstr("node 0 follows node 0"));

  topology.nodes[0].os_index = -1;
  EXPECT_THAT(Broken(topology), HasSubstr("node number -1"));
}

TEST(TopologyTest, RefusesACpuInTwoLists) {
  Topology topology = TwoNodes();
  topology.nodes[1].cpus = {1, 2};
  EXPECT_THAT(Broken(topology), HasSubstr("node 1000 cpus: CPU 1 is in"));

  topology = TwoNodes();
  topology.homeless_cpus = {3};
  EXPECT_THAT(Broken(topology), HasSubstr("homeless_cpus: CPU 3"));

  topology = TwoNodes();
  topology.offline_cpus = {0};
  EXPECT_THAT(Broken(topology), HasSubstr("offline_cpus: CPU 0"));
}

TEST(TopologyTest, RefusesListsThatAreNotAscending) {
  Topology topology = TwoNodes();
  topology.nodes[0].cpus = {1, 0};
  EXPECT_THAT(Broken(topology), HasSubstr("CPU 0 follows CPU 1"));

  topology = TwoNodes();
  topology.nodes[0].near_cpus = {kMaxCpuNumber + 1};
  EXPECT_THAT(Broken(topology), HasSubstr("near_cpus: CPU number 4096"));
}

TEST(TopologyTest, RefusesAMachineWithoutCpus) {
  Topology topology = TwoNodes();
  topology.nodes[0].cpus.clear();
  topology.nodes[1].cpus.clear();
  topology.offline_cpus = {0};

  EXPECT_THAT(Broken(topology), HasSubstr("no online CPU"));
}

TEST(TopologyTest, RefusesNegativeMemory) {
  Topology topology = TwoNodes();
  topology.nodes[0].memory_bytes = -1;

  EXPECT_THAT(Broken(topology), HasSubstr("memory_bytes is -1"));
}

TEST(TopologyTest, RefusesDistancesThatAreNotASquareAboveZero) {
  Topology topology = TwoNodes();
  topology.distances.pop_back();
  EXPECT_THAT(Broken(topology), HasSubstr("1 rows for 2 nodes"));

  topology.distances.push_back({20});
  EXPECT_THAT(Broken(topology), HasSubstr("of node 1000 has 1 entries"));

  topology.distances[1] = {0, 10};
  EXPECT_THAT(Broken(topology), HasSubstr("from node 1000 to node 0 is 0"));
}

}  // namespace
}  // namespace memtuned
