// SPDX-License-Identifier: Apache-2.0
// Small hwloc XML machines of our own making: CPUs of no node, nodes without
// CPUs, several distance matrices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/cpu_mask.h"
#include "daemon/host/topology_probe.h"
#include "tests/daemon/host/temp_dir.h"

namespace memtuned {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An object's tag. `cpus` and `nodes` are masks in hexadecimal, `rest` further
// attributes; ends with ">" so that "/" in rest closes it.
std::string Tag(const std::string& type, const std::string& cpus,
                const std::string& nodes, const std::string& rest = "") {
  static int gp_index = 0;
  return "<object type=\"" + type + "\" cpuset=\"" + cpus +
         "\" complete_cpuset=\"" + cpus + "\" nodeset=\"" + nodes +
         "\" complete_nodeset=\"" + nodes + "\" gp_index=\"" +
         std::to_string(++gp_index) + "\" " + rest + ">\n";
}

std::string Pu(int cpu, const std::string& nodes) {
  const std::string number = std::to_string(cpu);
  return Tag("PU", "0x" + std::to_string(1 << cpu), nodes,
             "os_index=\"" + number + "\"/");
}

std::string Node(int nid, const std::string& cpus, const std::string& rest) {
  return Tag("NUMANode", cpus, "0x" + std::to_string(1 << nid),
             "os_index=\"" + std::to_string(nid) + "\" " + rest + "/");
}

constexpr char kMemory[] = "local_memory=\"1073741824\"";
constexpr char kEnd[] = "</object>\n";

Topology ProbedXml(const std::string& objects, const std::string& after = "") {
  const TempDir dir;
  const std::string path = dir.Write("machine.xml",
                                     "<?xml version=\"1.0\"?>\n"
                                     "<topology version=\"2.0\">\n" +
                                         objects + after + "</topology>\n");
  absl::StatusOr<Topology> topology = ProbeTopology("xml:" + path);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.ok() ? *topology : Topology();
}

// Two nodes, 0 and 1, with a CPU each.
std::string TwoNodes() {
  return Tag("Machine", "0x3", "0x3", "os_index=\"0\"") +
         Tag("Package", "0x1", "0x1", "os_index=\"0\"") +
         Node(0, "0x1", kMemory) + Pu(0, "0x1") + kEnd +
         Tag("Package", "0x2", "0x2", "os_index=\"1\"") +
         Node(1, "0x2", kMemory) + Pu(1, "0x2") + kEnd + kEnd;
}

std::string Matrix(const std::string& name, const std::string& values) {
  return "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" " + name +
         " indexing=\"os\">\n<indexes length=\"4\">0 1 </indexes>\n"
         "<u64values length=\"" +
         std::to_string(values.size()) + "\">" + values +
         "</u64values>\n</distances2>\n";
}

// Report D1: the dies whose memory slots are empty.
TEST(TopologyXmlMachineTest, ServesCpusOfNoNodeByTheTree) {
  const Topology topology = ProbedXml(
      Tag("Machine", "0x0f", "0x5", "os_index=\"0\"") +
      Tag("Group", "0x3", "0x1") +
      Tag("Package", "0x1", "0x1", "os_index=\"0\"") + Node(0, "0x1", kMemory) +
      Pu(0, "0x1") + kEnd + Pu(1, "0x1") + kEnd + Tag("Group", "0x0c", "0x4") +
      Tag("Package", "0x4", "0x4", "os_index=\"1\"") + Node(2, "0x4", kMemory) +
      Pu(2, "0x4") + kEnd + Pu(3, "0x4") + kEnd + kEnd);

  EXPECT_THAT(topology.homeless_cpus, ElementsAre(1, 3));
  EXPECT_EQ(topology.HomeNodeOf(1), topology.NodeIndexOf(0));
  EXPECT_EQ(topology.HomeNodeOf(3), topology.NodeIndexOf(2));
  EXPECT_THAT(topology.warnings, Contains(HasSubstr("CPUs 1,3 of no usable")));
}

TEST(TopologyXmlMachineTest, FindsWhatACpulessNodeIsNearTo) {
  const Topology topology = ProbedXml(
      Tag("Machine", "0x3", "0x7", "os_index=\"0\"") +
      Tag("Package", "0x1", "0x5", "os_index=\"0\"") + Node(0, "0x1", kMemory) +
      Pu(0, "0x1") + Tag("Group", "0x0", "0x5", "kind=\"1001\" subkind=\"0\"") +
      Node(2, "0x0", "subtype=\"MCDRAM\" " + std::string(kMemory)) + kEnd +
      kEnd + Tag("Package", "0x2", "0x2", "os_index=\"1\"") +
      Node(1, "0x2", kMemory) + Pu(1, "0x2") + kEnd + kEnd);

  ASSERT_EQ(topology.nodes.size(), 3u);
  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0));
  EXPECT_THAT(topology.nodes[2].cpus, IsEmpty());
  EXPECT_THAT(topology.nodes[2].near_cpus, ElementsAre(0));
}

// A node of the whole machine owns what no closer node does.
TEST(TopologyXmlMachineTest, GivesUncoveredCpusToANodeOfTheMachine) {
  const Topology topology = ProbedXml(
      Tag("Machine", "0x3", "0x5", "os_index=\"0\"") + Node(2, "0x3", kMemory) +
      Tag("Package", "0x1", "0x1", "os_index=\"0\"") + Node(0, "0x1", kMemory) +
      Pu(0, "0x1") + kEnd + Pu(1, "0x4") + kEnd);

  ASSERT_EQ(topology.nodes.size(), 2u);
  EXPECT_THAT(topology.nodes[0].cpus, ElementsAre(0));
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(1));
}

TEST(TopologyXmlMachineTest, PrefersTheMatrixOfTheKernelsName) {
  const Topology topology =
      ProbedXml(TwoNodes(), Matrix("", "10 50 50 10 ") +
                                Matrix("name=\"NUMALatency\"", "10 31 32 10 ") +
                                Matrix("", "10 60 60 10 "));

  EXPECT_THAT(topology.distances,
              ElementsAre(ElementsAre(10, 31), ElementsAre(32, 10)));
}

TEST(TopologyXmlMachineTest, PrefersTheMatrixInTheKernelsUnits) {
  const Topology topology = ProbedXml(
      TwoNodes(), Matrix("", "1 5 5 1 ") + Matrix("", "10 31 32 10 "));

  EXPECT_THAT(topology.distances,
              ElementsAre(ElementsAre(10, 31), ElementsAre(32, 10)));
}

TEST(TopologyXmlMachineTest, ScalesAMatrixInOtherUnits) {
  const Topology topology =
      ProbedXml(TwoNodes(), Matrix("", "100 215 310 100 "));

  EXPECT_THAT(topology.distances,
              ElementsAre(ElementsAre(10, 22), ElementsAre(31, 10)));
}

TEST(TopologyXmlMachineTest, RefusesASetOfCpusWithoutEnd) {
  const TempDir dir;
  const std::string path = dir.Write(
      "endless.xml", "<topology version=\"2.0\">\n" +
                         Tag("Machine", "0xf...f", "0x1", "os_index=\"0\"") +
                         Node(0, "0xf...f", kMemory) + Pu(0, "0x1") + kEnd +
                         "</topology>\n");

  EXPECT_EQ(ProbeTopology("xml:" + path).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace memtuned
