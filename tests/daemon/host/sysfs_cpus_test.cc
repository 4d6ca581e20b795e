// SPDX-License-Identifier: Apache-2.0
// The kernel's CPU lists from small trees written here.
#include "daemon/host/sysfs_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/host/temp_dir.h"

namespace memtuned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class SysfsCpusTest : public ::testing::Test {
 protected:
  SysfsCpus Read() const {
    return ReadSysfsCpus(dir_.path() + "/sys", dir_.path() + "/proc");
  }
  void Cpu(const std::string& name, const std::string& text) const {
    dir_.Write("sys/devices/system/cpu/" + name, text);
  }
  void Node(const std::string& name, const std::string& text) const {
    dir_.Write("sys/devices/system/node/" + name, text);
  }

  TempDir dir_;
};

TEST_F(SysfsCpusTest, FindsNothingWhereThereIsNothing) {
  const SysfsCpus cpus = Read();

  EXPECT_THAT(cpus.possible, IsEmpty());
  EXPECT_THAT(cpus.own_by_node, IsEmpty());
  EXPECT_EQ(cpus.memory_bytes, 0);
  EXPECT_THAT(cpus.warnings, IsEmpty());
}

TEST_F(SysfsCpusTest, ReadsPossibleCpusNodesAndMemory) {
  Cpu("possible", "0-3\n");
  Node("node0/cpulist", "0,2\n");
  Node("node1000/cpulist", "\n");
  Node("possible", "0-1000\n");
  dir_.Write("proc/meminfo", "MemFree: 1 kB\nMemTotal:    2048 kB\n");

  const SysfsCpus cpus = Read();

  EXPECT_THAT(cpus.possible, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cpus.own_by_node,
              ElementsAre(Pair(0, ElementsAre(0, 2)), Pair(1000, IsEmpty())));
  EXPECT_EQ(cpus.memory_bytes, 2048 * 1024);
}

TEST_F(SysfsCpusTest, ReadsTheMaskOfKernelsWithoutLists) {
  Node("node3/cpumap", "00000001,0000000c\n");

  EXPECT_THAT(Read().own_by_node, ElementsAre(Pair(3, ElementsAre(2, 3, 32))));
}

TEST_F(SysfsCpusTest, WarnsOfFilesItCannotUnderstand) {
  Cpu("possible", "zero to three\n");
  Node("node0/cpulist", "0-\n");
  Node("nodeX/cpulist", "0\n");
  dir_.Write("proc/meminfo", "MemTotal: lots\n");

  const SysfsCpus cpus = Read();

  EXPECT_THAT(cpus.own_by_node, IsEmpty());
  EXPECT_EQ(cpus.memory_bytes, 0);
  EXPECT_THAT(cpus.warnings,
              ElementsAre(HasSubstr("cpu/possible is ignored"),
                          HasSubstr("node0/cpulist is ignored")));
}

TEST_F(SysfsCpusTest, DropsPossibleCpusBeyondTheLimitAndSaysSo) {
  Cpu("possible", "0-8191\n");

  const SysfsCpus cpus = Read();

  EXPECT_EQ(cpus.possible.size(), 4096u);
  EXPECT_THAT(cpus.warnings,
              ElementsAre(HasSubstr("those above 4095 are ignored")));
}

}  // namespace
}  // namespace memtuned
