// SPDX-License-Identifier: Apache-2.0
// Every real hwloc XML file and /sys tree of the fixtures: it loads with the
// counts of the fixtures' own table, or is refused with a reason; and so does
// each damaged form of it. Skips where the fixtures are absent.
#include "tests/support/topology_fixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/cpu_mask.h"
#include "daemon/host/topology_probe.h"
#include "tests/daemon/host/temp_dir.h"

namespace memtuned {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A row of the table: "6/8 (all: 11/8)" or "refused", and how many nodes of
// the file have no CPU.
struct Row {
  std::string loads;
  int cpuless = 0;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '|');) {
    const size_t begin = cell.find_first_not_of(' ');
    cells.push_back(
        begin == std::string::npos
            ? ""
            : cell.substr(begin, cell.find_last_not_of(' ') - begin + 1));
  }
  return cells;
}

std::string Counts(const Topology& topology) {
  return std::to_string(topology.nodes.size()) + "/" +
         std::to_string(topology.OnlineCpus().size());
}

// What every loaded topology must give a pool.
void ExpectUsable(const Topology& topology, const std::string& name) {
  EXPECT_TRUE(topology.Validate().ok()) << name << topology.Validate();
  for (int cpu = 0; cpu < topology.CpuNumberEnd(); ++cpu) {
    const int home = topology.HomeNodeOf(cpu);
    ASSERT_GE(home, 0) << name << " CPU " << cpu;
    EXPECT_GT(topology.nodes[static_cast<size_t>(home)].memory_bytes, 0);
  }
}

class TopologyFixturesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(root_ / "topology")) {
      GTEST_SKIP() << "no topology fixtures at '" << root_.string()
                   << "'; set MEMTUNED_FIXTURES to their directory";
    }
  }

  std::map<std::string, Row> Table() const {
    std::map<std::string, Row> table;
    std::istringstream readme(ReadFile(root_ / "README.md"));
    for (std::string line; std::getline(readme, line);) {
      const std::vector<std::string> cells = Cells(line);
      if (cells.size() < 11 || fs::path(cells[1]).extension() != ".xml") {
        continue;
      }
      const std::string& counts = cells[9];  // memoryless/CPU-less
      table[cells[1]] = {
          cells[10], std::atoi(counts.substr(counts.find('/') + 1).c_str())};
    }
    return table;
  }

  fs::path Xml(const std::string& name) const {
    return root_ / "topology" / name;
  }

  // Probes a fixture that must load.
  Topology Load(const std::string& name, const ProbeOptions& options = {}) {
    absl::StatusOr<Topology> topology =
        ProbeTopology("xml:" + Xml(name).string(), options);
    EXPECT_TRUE(topology.ok()) << topology.status();
    return topology.ok() ? *topology : Topology();
  }

  const fs::path root_ = FixturesRoot();
};

TEST_F(TopologyFixturesTest, LoadsOrRefusesEachXmlAsTheTableSays) {
  const std::map<std::string, Row> table = Table();
  ASSERT_FALSE(table.empty());
  ProbeOptions all;
  all.include_disallowed = true;
  for (const fs::path& file : FixtureFiles("topology", ".xml")) {
    const std::string name = file.filename();
    SCOPED_TRACE(name);
    const std::string spec = "xml:" + file.string();
    const auto row = table.find(name);
    const absl::StatusOr<Topology> topology = ProbeTopology(spec);
    if (topology.ok()) {
      ExpectUsable(*topology, name);
    } else {
      ExpectRefusedWithReason(topology.status(), name);
    }
    if (row == table.end()) continue;
    const std::string& loads = row->second.loads;

    EXPECT_EQ(topology.ok() ? Counts(*topology) : "refused",
              loads.substr(0, loads.find(' ')));

    const size_t more = loads.find("(all: ");
    if (!topology.ok()) continue;
    const absl::StatusOr<Topology> whole = ProbeTopology(spec, all);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(Counts(*whole),
              more == std::string::npos
                  ? Counts(*topology)
                  : loads.substr(more + 6, loads.size() - more - 7));
  }
}

TEST_F(TopologyFixturesTest, FindsTheCpulessNodesOfTheTable) {
  // Where the file itself gives CPU-less nodes the CPUs they are near to, the
  // table counts none: fakememinitiators has six behind its memoryless nodes.
  ProbeOptions all;
  all.include_disallowed = true;
  for (const auto& [name, row] : Table()) {
    const absl::StatusOr<Topology> topology =
        ProbeTopology("xml:" + Xml(name).string(), all);
    if (!topology.ok() || name.find("fakememinitiators") != std::string::npos) {
      continue;
    }
    const auto cpuless = std::count_if(
        topology->nodes.begin(), topology->nodes.end(),
        [](const TopologyNode& node) { return node.cpus.empty(); });
    EXPECT_EQ(cpuless, row.cpuless) << name;
  }
}

TEST_F(TopologyFixturesTest, LoadsEachTreeAsItsXmlTwin) {
  for (const fs::path& archive : FixtureFiles("topology/fsroot", ".bz2")) {
    SCOPED_TRACE(archive.filename().string());
    const TempDir dir;
    const std::string tree = UnpackTree(archive, dir.path());
    ASSERT_NE(tree, "") << "needs tar and bzip2";

    const absl::StatusOr<Topology> topology = ProbeTopology("fsroot:" + tree);

    if (!topology.ok()) {
      ExpectRefusedWithReason(topology.status(), tree);
      continue;
    }
    ExpectUsable(*topology, tree);
    const std::string stem = archive.stem().stem();
    const fs::path twin = Xml("gen29-" + stem + ".xml");
    if (!fs::exists(twin)) continue;
    const Topology other = Load(twin.filename());
    ASSERT_EQ(Counts(*topology), Counts(other));
    EXPECT_EQ(topology->distances, other.distances);
    EXPECT_EQ(topology->homeless_cpus, other.homeless_cpus);
    for (size_t i = 0; i < other.nodes.size(); ++i) {
      EXPECT_EQ(topology->nodes[i].os_index, other.nodes[i].os_index);
      EXPECT_EQ(topology->nodes[i].memory_bytes, other.nodes[i].memory_bytes);
      EXPECT_EQ(FormatCpuList(topology->nodes[i].cpus),
                FormatCpuList(other.nodes[i].cpus));
      EXPECT_EQ(FormatCpuList(topology->nodes[i].near_cpus),
                FormatCpuList(other.nodes[i].near_cpus));
    }
  }
}

// Report D2: POWER9, whose highest node number is no count.
TEST_F(TopologyFixturesTest, KeepsSparseNodeNumbers) {
  if (!fs::exists(Xml("flux-sierra2-p9.xml"))) GTEST_SKIP() << "no such file";
  const Topology topology = Load("flux-sierra2-p9.xml");

  std::vector<int> numbers;
  for (const auto& node : topology.nodes) numbers.push_back(node.os_index);
  EXPECT_EQ(FormatCpuList(numbers), "0,8,252-255");
  EXPECT_EQ(topology.HomeNodeOf(175), 1);
  EXPECT_EQ(topology.distances[0][1], 40);
}

// Report D3: high-bandwidth nodes own no CPU but are near to some.
TEST_F(TopologyFixturesTest, TellsOwnCpusFromNearOnes) {
  const std::string name = "mpibind-knl-snc4-flat-hwloc1.xml";
  if (!fs::exists(Xml(name))) GTEST_SKIP() << "no such file";
  const Topology topology = Load(name);

  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(topology.nodes[i].cpus.empty());
    EXPECT_THAT(topology.nodes[i + 4].cpus, IsEmpty());
    EXPECT_EQ(topology.nodes[i + 4].near_cpus, topology.nodes[i].cpus);
  }
}

// Kernel matrix beside others of the same nodes.
TEST_F(TopologyFixturesTest, PicksTheKernelsDistances) {
  for (const char* name :
       {"hwloc-16amd64-4distances.v1.xml", "hwloc-16amd64-4distances.v2.xml"}) {
    if (!fs::exists(Xml(name))) GTEST_SKIP() << "no such file";
    const Topology topology = Load(name);

    EXPECT_EQ(topology.distances[0][0], 10) << name;
    EXPECT_EQ(topology.distances[0][1], 20) << name;
    EXPECT_THAT(topology.warnings, Not(Contains(HasSubstr("distance"))));
  }
}

TEST_F(TopologyFixturesTest, ServesCpusBehindMemorylessNodes) {
  const std::string name = "gen29-fakememinitiators-1np2c+1npp+gi.xml";
  if (!fs::exists(Xml(name))) GTEST_SKIP() << "no such file";
  ProbeOptions all;
  all.include_disallowed = true;
  for (const Topology& topology : {Load(name), Load(name, all)}) {
    const auto home = [&](int cpu) {
      return topology.nodes[topology.HomeNodeOf(cpu)].os_index;
    };
    EXPECT_EQ(home(0), 5);
    EXPECT_EQ(home(2), 8);
    EXPECT_EQ(home(4), 6);
    EXPECT_EQ(home(7), 9);
  }
}

TEST_F(TopologyFixturesTest, SaysThatAWindowsMachineIsNotLinux) {
  const std::string name = "xmrig-2850-windows-threadripper.v2.xml";
  if (!fs::exists(Xml(name))) GTEST_SKIP() << "no such file";

  EXPECT_THAT(Load(name).warnings, Contains(HasSubstr("not Linux")));
}

TEST_F(TopologyFixturesTest, ListsOfflineCpus) {
  const std::string name = "hwloc-16em64t-4s2c2t-offlines.v2.xml";
  if (!fs::exists(Xml(name))) GTEST_SKIP() << "no such file";
  const Topology topology = Load(name);

  EXPECT_EQ(FormatCpuList(topology.OnlineCpus()), "0-1,3-4,6,12,15");
  EXPECT_EQ(FormatCpuList(topology.offline_cpus), "2,5,7-11,13-14");
}

// Cuts and wild edits, seeded. libhwloc itself crashes on some of them.
TEST_F(TopologyFixturesTest, SurvivesDamagedFiles) {
  const TempDir dir;
  std::mt19937 random(2850);
  for (const fs::path& file : FixtureFiles("topology", ".xml")) {
    const std::string whole = ReadFile(file);
    for (int round = 0; round < 4; ++round) {
      std::string text = whole;
      const size_t at = random() % text.size();
      if (round == 0) text.resize(at);
      if (round == 1) text.erase(at, random() % 500);
      if (round == 2) text.insert(at, "\"><object type=\"NUMANode\"/>");
      for (int i = 0; round > 2 && i < 8; ++i) {
        text[random() % text.size()] = static_cast<char>(1 + random() % 255);
      }
      const std::string path = dir.Write("damaged.xml", text);

      const absl::StatusOr<Topology> topology = ProbeTopology("xml:" + path);

      const std::string name =
          file.filename().string() + " round " + std::to_string(round);
      if (topology.ok()) {
        ExpectUsable(*topology, name);
      } else {
        ExpectRefusedWithReason(topology.status(), name);
      }
    }
  }
}

TEST_F(TopologyFixturesTest, RefusesEachFileCutInTheMiddle) {
  const TempDir dir;
  for (const fs::path& file : FixtureFiles("topology", ".xml")) {
    const std::string whole = ReadFile(file);
    const std::string path =
        dir.Write("cut.xml", whole.substr(0, whole.size() / 2));

    ExpectRefusedWithReason(ProbeTopology("xml:" + path).status(),
                            file.filename());
  }
}

}  // namespace
}  // namespace memtuned
