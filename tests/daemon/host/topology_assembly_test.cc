// SPDX-License-Identifier: Apache-2.0
// The rules for odd machines, each on the smallest machine that shows it.
#include "daemon/host/topology_assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace memtuned {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// CPUs 0..n-1, all online and allowed, and the nodes given.
RawMachine Machine(int cpus, std::vector<RawNode> nodes) {
  RawMachine machine;
  machine.source = TopologySource::kXml;
  machine.description = "xml:test";
  machine.nodes = std::move(nodes);
  for (int cpu = 0; cpu < cpus; ++cpu) machine.online_cpus.push_back(cpu);
  machine.allowed_cpus = machine.complete_cpus = machine.online_cpus;
  return machine;
}

Topology Assembled(const RawMachine& machine,
                   const ProbeOptions& options = {}) {
  absl::StatusOr<Topology> topology = AssembleTopology(machine, options);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.ok() ? *topology : Topology();
}

std::string Error(const RawMachine& machine, const ProbeOptions& options = {}) {
  const absl::Status status = AssembleTopology(machine, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(TopologyAssemblyTest, SortsNodesAndTheirDistances) {
  RawMachine machine = Machine(2, {{1000, kGiB, {1}}, {0, 2 * kGiB, {0}}});
  machine.distances = {{10, 31}, {21, 10}};

  const Topology topology = Assembled(machine);

  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_EQ(topology.nodes[0].os_index, 0);
  EXPECT_EQ(topology.nodes[0].memory_bytes, int64_t{2 * kGiB});
  EXPECT_EQ(topology.nodes[1].os_index, 1000);
  EXPECT_THAT(topology.distances,
              ElementsAre(ElementsAre(10, 21), ElementsAre(31, 10)));
  EXPECT_THAT(topology.warnings, IsEmpty());
}

TEST(TopologyAssemblyTest, GivesCpusToOrdinaryMemoryNotToHighBandwidth) {
  const Topology topology =
      Assembled(Machine(2, {{0, kGiB, {0, 1}, true, true}, {4, kGiB, {0, 1}}}));

  EXPECT_THAT(topology.nodes[0].cpus, IsEmpty());
  EXPECT_THAT(topology.nodes[0].near_cpus, ElementsAre(0, 1));
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(0, 1));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("node 0 without CPUs")));
}

TEST(TopologyAssemblyTest, GivesCpusToTheMostSpecificThenTheLowestNode) {
  const Topology topology = Assembled(Machine(
      4, {{0, kGiB, {0, 1, 2, 3}}, {1, kGiB, {2, 3}}, {2, kGiB, {2, 3}}}));

  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(2, 3));
  EXPECT_THAT(topology.nodes[2].cpus, IsEmpty());
}

TEST(TopologyAssemblyTest, BelievesTheKernelOverLocality) {
  RawMachine machine = Machine(2, {{0, kGiB, {0, 1}}, {1, kGiB, {0, 1}}});
  machine.sysfs.emplace().own_by_node = {{0, {}}, {1, {0, 1}}};

  const Topology topology = Assembled(machine);

  EXPECT_THAT(topology.nodes[0].cpus, IsEmpty());
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(0, 1));
}

TEST(TopologyAssemblyTest, DoesNotBelieveAKernelThatContradictsItself) {
  RawMachine machine = Machine(2, {{0, kGiB, {0}}, {1, kGiB, {1}}});
  machine.sysfs.emplace().own_by_node = {{0, {0, 1}}, {1, {0, 1}}};

  const Topology topology = Assembled(machine);

  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0));
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(1));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("the same CPUs")));
}

TEST(TopologyAssemblyTest, SaysWhenTheKernelHasOtherNodes) {
  RawMachine machine = Machine(2, {{0, kGiB, {0, 1}}});
  machine.sysfs.emplace().own_by_node = {{0, {0}}, {1, {1}}};

  const Topology topology = Assembled(machine);

  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(topology.warnings,
              Contains(HasSubstr("the kernel lists nodes 0-1")));
}

// Report D1: CPUs of a die whose memory slots are empty.
TEST(TopologyAssemblyTest, ServesHomelessCpusByTheMachinesTree) {
  RawMachine machine = Machine(4, {{0, kGiB, {0}}, {2, kGiB, {1}}});
  machine.nearest_in_tree = {{2, {2}}, {3, {0, 2}}};

  const Topology topology = Assembled(machine);

  EXPECT_THAT(topology.homeless_cpus, ElementsAre(2, 3));
  EXPECT_EQ(topology.nodes[topology.HomeNodeOf(2)].os_index, 2);
  EXPECT_GE(topology.HomeNodeOf(3), 0);
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("CPUs 2-3 of no usable")));
}

TEST(TopologyAssemblyTest, ServesCpusOfAMemorylessNodeFromTheNearest) {
  RawMachine machine =
      Machine(3, {{0, kGiB, {0}}, {1, 0, {1}}, {2, kGiB, {2}}});
  machine.distances = {{10, 21, 21}, {31, 10, 21}, {21, 21, 10}};

  const Topology topology = Assembled(machine);

  EXPECT_EQ(topology.HomeNodeOf(1), 2);
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("node 1 without memory")));
}

// Report D6: a cpuset that allows other nodes than the CPUs' own.
TEST(TopologyAssemblyTest, LeavesOutWhatTheCpusetForbids) {
  RawMachine machine = Machine(
      6, {{0, kGiB, {0, 1}, false}, {1, kGiB, {2, 3}}, {2, kGiB, {4, 5}}});
  machine.allowed_cpus = {0, 2};
  machine.distances = {{10, 40, 20}, {40, 10, 20}, {20, 20, 10}};

  const Topology topology = Assembled(machine);

  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(2));
  EXPECT_THAT(topology.homeless_cpus, ElementsAre(0));
  EXPECT_EQ(topology.nodes[topology.HomeNodeOf(0)].os_index, 2);
  EXPECT_THAT(topology.offline_cpus, ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("node 0 left out")));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("CPUs 1,3-5 online but")));
}

TEST(TopologyAssemblyTest, KeepsWhatTheCpusetForbidsOnRequest) {
  RawMachine machine = Machine(2, {{0, kGiB, {0}, false}, {1, kGiB, {1}}});
  machine.allowed_cpus = {1};
  ProbeOptions options;
  options.include_disallowed = true;

  const Topology topology = Assembled(machine, options);

  EXPECT_EQ(topology.nodes.size(), 2u);
  EXPECT_THAT(topology.OnlineCpus(), ElementsAre(0, 1));
  EXPECT_THAT(topology.offline_cpus, IsEmpty());
}

TEST(TopologyAssemblyTest, ListsCpusThatMayComeAsOffline) {
  RawMachine machine = Machine(2, {{0, kGiB, {0, 1}}});
  machine.complete_cpus = {0, 1, 4};
  machine.sysfs.emplace().possible = {0, 1, 2, 3};

  EXPECT_THAT(Assembled(machine).offline_cpus, ElementsAre(2, 3, 4));
}

// Report D4: machines without nodes, or whose nodes all lack memory.
TEST(TopologyAssemblyTest, MakesOneNodeOfAMachineWithoutAny) {
  const Topology topology = Assembled(Machine(2, {}));

  ASSERT_EQ(topology.nodes.size(), 1u);
  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0, 1));
  EXPECT_EQ(topology.nodes[0].memory_bytes, int64_t{kGiB});
  EXPECT_EQ(topology.HomeNodeOf(1), 0);
  EXPECT_THAT(topology.homeless_cpus, IsEmpty());
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("(assumed)")));
}

TEST(TopologyAssemblyTest, MakesOneNodeOfMemorylessOnesWithMeminfosMemory) {
  RawMachine machine = Machine(2, {{3, 0, {0}}, {5, 0, {1}}});
  machine.sysfs.emplace().memory_bytes = 4096;

  const Topology topology = Assembled(machine);

  ASSERT_EQ(topology.nodes.size(), 1u);
  EXPECT_EQ(topology.nodes[0].os_index, 3);
  EXPECT_EQ(topology.nodes[0].memory_bytes, 4096);
  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0, 1));
}

TEST(TopologyAssemblyTest, AssumesTheMemoryItIsTold) {
  ProbeOptions options;
  options.assumed_memory_bytes = 12345;
  EXPECT_EQ(Assembled(Machine(1, {{0, 0, {0}}}), options).nodes[0].memory_bytes,
            12345);

  options.assumed_memory_bytes = 0;
  EXPECT_THAT(Error(Machine(1, {{0, 0, {0}}}), options),
              HasSubstr("assumed_memory_bytes is 0; allowed 1 to"));
}

TEST(TopologyAssemblyTest, KeepsTheNodesOfADescriptionWithoutMemory) {
  RawMachine machine = Machine(2, {{0, 0, {0}}, {1, 0, {1}}});
  machine.source = TopologySource::kSynthetic;

  const Topology topology = Assembled(machine);

  EXPECT_EQ(topology.nodes.size(), 2u);
  EXPECT_EQ(topology.nodes[1].memory_bytes, int64_t{kGiB});
}

TEST(TopologyAssemblyTest, BringsDistancesToTheKernelsUnits) {
  RawMachine machine = Machine(2, {{0, kGiB, {0}}, {1, kGiB, {1}}});
  machine.distances = {{100, 215}, {26, 13}};

  EXPECT_THAT(Assembled(machine).distances,
              ElementsAre(ElementsAre(10, 22), ElementsAre(20, 10)));
}

TEST(TopologyAssemblyTest, FillsDistancesThatAreMissingOrAbsurd) {
  RawMachine machine = Machine(2, {{0, kGiB, {0}}, {1, kGiB, {1}}});
  EXPECT_THAT(Assembled(machine).distances,
              ElementsAre(ElementsAre(10, 20), ElementsAre(20, 10)));

  machine.distances = {{0, 1}, {~uint64_t{0}, 1}};
  const Topology topology = Assembled(machine);
  EXPECT_THAT(topology.distances,
              ElementsAre(ElementsAre(10, 20), ElementsAre(255, 10)));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("not stated")));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("above 255")));
}

TEST(TopologyAssemblyTest, SaysNothingOfDistancesForOneNode) {
  EXPECT_THAT(Assembled(Machine(1, {{0, kGiB, {0}}})).warnings,
              Not(Contains(HasSubstr("distance"))));
}

TEST(TopologyAssemblyTest, RefusesWhatIsBeyondTheLimits) {
  EXPECT_THAT(Error(Machine(1, {{1024, kGiB, {0}}})),
              HasSubstr("xml:test: has node number 1024; allowed 0 to 1023"));
  EXPECT_THAT(Error(Machine(1, {{0xffffffff, kGiB, {0}}})),
              HasSubstr("4294967295"));
  EXPECT_THAT(Error(Machine(1, {{7, kGiB, {0}}, {7, kGiB, {0}}})),
              HasSubstr("two nodes with number 7"));
  EXPECT_THAT(Error(Machine(1, {{0, ~uint64_t{0}, {0}}})),
              HasSubstr("18446744073709551615 bytes"));
  EXPECT_THAT(Error(Machine(1, std::vector<RawNode>(257))),
              HasSubstr("257 nodes; at most 256"));
  EXPECT_THAT(Error(Machine(0, {{0, kGiB, {}}})), HasSubstr("no online CPU"));
}

}  // namespace
}  // namespace memtuned
