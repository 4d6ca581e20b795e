// SPDX-License-Identifier: Apache-2.0
// The reading verbs of the real binary, in every output format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "tests/client/ctl/fake_daemon.h"
#include "tests/client/ctl/run_binary.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class ReadVerbsTest : public ::testing::Test {
 protected:
  RunResult Run(std::vector<std::string> arguments,
                const std::map<std::string, std::string>& environment = {}) {
    arguments.insert(arguments.begin(), {"--target", daemon_.target()});
    return RunCtl(arguments, environment);
  }

  Json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-o", "json"});
    const RunResult result = Run(arguments);
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out, nullptr, false);
  }

  std::string Heading(const std::string& rest) {
    return "pools/default at " + daemon_.target() + " - " + rest + "\n";
  }

  FakeDaemon daemon_;
};

TEST_F(ReadVerbsTest, ZonesPrintATable) {
  const RunResult result = Run({"zones"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(
      result.out,
      Heading("generation 12 - policy memtuned - sample 0.3 s old") +
          "ZONE        MANAGED       FREE  WMARK-MIN  WMARK-LOW  WMARK-HIGH  "
          "BATCH  PAGESET-HIGH min..max  IN-PAGESETS  LIMITS  STATE\n"
          "0/Normal  256.0 MiB  128.0 MiB    1.0 MiB    2.0 MiB     3.0 MiB  "
          "   63              378..4096      2.0 MiB  ok      ready\n"
          "1/Normal    2.6 MiB  128.0 MiB    1.0 MiB    2.0 MiB     3.0 MiB  "
          "    7                     42      2.0 MiB  ok      initialising "
          "1.0 %\n");
}

TEST_F(ReadVerbsTest, ZonesCanBeFiltered) {
  const Json zones = RunJson({"zones", "--node", "1"})["zones"];
  ASSERT_EQ(zones.size(), 1u);
  EXPECT_EQ(zones[0]["node"], 1);

  const RunResult none = Run({"zones", "--node", "7"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr("it has 0/Normal, 1/Normal"));
}

TEST_F(ReadVerbsTest, ZonesWideAddsColumns) {
  const std::string out = Run({"zones", "-o", "wide"}).out;

  EXPECT_THAT(out, HasSubstr("LARGEST-FREE-ORDER"));
  EXPECT_THAT(out, HasSubstr("25.0 %"));
}

TEST_F(ReadVerbsTest, ZonesJsonIsTheWholeResponse) {
  const Json json = RunJson({"zones"});

  ASSERT_EQ(json["zones"].size(), 2u);
  EXPECT_EQ(json["zones"][0]["managed_bytes"], "268435456");
  EXPECT_EQ(json["zones"][0]["depot_bytes"], "0");
  EXPECT_EQ(json["sample"]["subject"], "pools/default");
  EXPECT_EQ(json["next_page_token"], "");
}

TEST_F(ReadVerbsTest, YamlSaysTheSameAsJson) {
  const Json json = RunJson({"zones"});
  const RunResult result = Run({"zones", "-o", "yaml"});

  EXPECT_THAT(result.out, StartsWith("---\n"));
  const YAML::Node yaml = YAML::Load(result.out);
  ASSERT_EQ(yaml["zones"].size(), 2u);
  EXPECT_EQ(yaml["zones"][1]["name"].as<std::string>(),
            json["zones"][1]["name"]);
  EXPECT_EQ(yaml["zones"][0]["managed_bytes"].Tag(), "!");
}

TEST_F(ReadVerbsTest, TopologyShowsNodesAndWhatWasOdd) {
  const RunResult result = Run({"topology"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out,
            Heading("topology synthetic:node:2 pu:4 - 2 nodes") +
                "NODE     MEMORY  CPUS  CPU-LIST  NEAR-CPUS  ZONES   "
                "DISTANCES\n"
                "   0  256.0 GiB     4  0-3       -          Normal  10 21\n"
                "1000  256.0 GiB     4  4-7       -          Normal  21 10\n"
                "offline CPUs     8\n"
                "warning  node 1000 has no distance to itself\n");
  EXPECT_EQ(RunJson({"topology"})["topology"]["nodes"][1]["os_index"], 1000);
}

TEST_F(ReadVerbsTest, PagesetsSummariseZones) {
  const RunResult result = Run({"pagesets"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("PAGES min/median/max"));
  EXPECT_THAT(result.out,
              HasSubstr("1/Normal     4      7            42               "
                        "0/31/42     1000          7.00      300        2000  "
                        "   25.0 %  initialising 1.0 %\n"));
  EXPECT_EQ(RunJson({"pagesets"})["zones"].size(), 2u);
}

TEST_F(ReadVerbsTest, PagesetsShowEachCpuOnRequest) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"pagesets", "--cpu", "--node", "1"},
        std::vector<std::string>{"pagesets", "-o", "wide", "--node", "1"}}) {
    const std::string out = Run(arguments).out;
    EXPECT_THAT(out, HasSubstr("1/Normal    1     31     63           500      "
                               "378                    378  23 8\n"));
    EXPECT_THAT(out, Not(HasSubstr("0/Normal")));
  }
  EXPECT_EQ(RunJson({"pagesets", "--cpu"})["pagesets"].size(), 4u);
}

TEST_F(ReadVerbsTest, PagesetsShowRatesOnRequest) {
  const RunResult result = Run({"pagesets", "--rate", "100ms"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("REFILLS/s"));
  EXPECT_THAT(result.out, HasSubstr("over 1.00 s"));
  EXPECT_THAT(result.out, HasSubstr("       1000          7.00        300  "));
}

TEST_F(ReadVerbsTest, ProcessesShowWhatTheyHold) {
  const RunResult result = Run({"processes"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(
      result.out,
      HasSubstr("ID     PID   UID  STATE    THREADS    HOLDS     PEAK    LIMIT "
                " LAST-ACTIVE  LOCKS  MEMS-ALLOWED  ATTACHED  COMMAND\n"
                "3-17  4242  1000  running        2  5.0 MiB  7.0 MiB  8.0 MiB "
                "       2.0 s  -      0-1              5 min  memtune-load\n"));
  EXPECT_EQ(RunJson({"processes"})["processes"][0]["pid"], 4242);
  EXPECT_EQ(RunJson({"processes"})["processes"][0]["held_blocks"][0], "12");
  EXPECT_THAT(Run({"processes", "-o", "wide"}).out,
              HasSubstr("  0:12 3:1  memtune-load\n"));
}

TEST_F(ReadVerbsTest, ProcessesNameWhoIsStoppedAndWhatItHolds) {
  daemon_.state().holder_stopped = true;

  const RunResult result = Run({"processes"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stopped 12 s"));
  EXPECT_THAT(result.out, HasSubstr("  zone 0/Normal 12 s, tuning 3.0 s  "));
  EXPECT_THAT(result.out, HasSubstr("  -*  ")) << "no limit, of its own";
  const auto json = RunJson({"processes"})["processes"][1];
  EXPECT_EQ(json["stopped"], "12s");
  EXPECT_EQ(json["holds"][0]["where"], "nodes/0/zones/Normal");
}

TEST_F(ReadVerbsTest, ProcessesShowTheirNodesWhenAsked) {
  const RunResult result = Run({"processes", "--nodes"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("ID    NODE    HOLDS  PURGEABLE  ON-OFFER  BLOCKS\n"
                        "3-17     0  3.0 MiB        0 B       0 B  0:7\n"
                        "3-17     1  2.0 MiB        0 B   4.0 KiB  0:7\n"));
}

TEST_F(ReadVerbsTest, StatsShowEveryStatistic) {
  const RunResult result = Run({"stats"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("memtuned_zone_free_bytes         node=0 zone=Normal  "
                        "     128.0 MiB\n"));
  EXPECT_THAT(result.out, HasSubstr("4, mean 500 us"));
}

TEST_F(ReadVerbsTest, StatsCanBeFilteredByName) {
  const std::string out = Run({"stats", "refills"}).out;
  EXPECT_THAT(out, HasSubstr("memtuned_pageset_refills_total"));
  EXPECT_THAT(out, Not(HasSubstr("memtuned_zone_free_bytes")));

  EXPECT_EQ(RunJson({"stats", "refills", "free"})["snapshot"]["stats"].size(),
            2u);

  const RunResult none = Run({"stats", "nonsense"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr("contains 'nonsense'"));
}

TEST_F(ReadVerbsTest, StatsRateCountsOnlyWhatGrows) {
  const RunResult result = Run({"stats", "--rate", "0.1"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("PER-SECOND"));
  EXPECT_THAT(result.out, HasSubstr("2000      1000.0\n"));
  EXPECT_THAT(result.out, HasSubstr("128.0 MiB           -\n"));
}

TEST_F(ReadVerbsTest, StatsWideTellsWhatTheNumbersMean) {
  EXPECT_THAT(Run({"stats", "-o", "wide"}).out, HasSubstr("HELP"));
}

TEST_F(ReadVerbsTest, TunablesShowValuesAndRanges) {
  const RunResult result = Run({"tunables"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out,
              StartsWith(Heading("generation 12 - etag \"12-ab\"")));
  EXPECT_THAT(result.out,
              HasSubstr("pageset.batch_factor         1  -           1  0.25 "
                        "to 8  default  yes\n"));
  EXPECT_THAT(result.out, HasSubstr("no: fixed here"));
  EXPECT_EQ(RunJson({"tunables"})["tunables"].size(), 2u);
}

TEST_F(ReadVerbsTest, OneTunableShowsEverything) {
  const RunResult result = Run({"tunables", "pageset.batch_factor"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("allowed     0.25 to 8\n"));
  EXPECT_THAT(result.out, HasSubstr("changed     never\n"));
  EXPECT_EQ(
      RunJson({"tunables", "pageset.batch_factor"})["tunable"]["value"]["real"],
      1);

  const RunResult unknown = Run({"tunables", "pageset.batch_facto"});
  EXPECT_EQ(unknown.exit, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'pageset.batch_factor'?"));
}

TEST_F(ReadVerbsTest, SubjectsShowStateAndSize) {
  const RunResult result = Run({"subjects"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out,
            "1 subject at " + daemon_.target() +
                " - daemon 9.8.7\n"
                "SUBJECT        STATE     SIZE  INITIALISED  POLICY    "
                "GENERATION  ETAG   CAPABILITIES\n"
                "pools/default  ready  1.0 GiB    512.0 MiB  memtuned          "
                "12  12-ab  set,drain\n");
  EXPECT_EQ(RunJson({"subjects"})["subjects"][0]["name"], "pools/default");
}

TEST_F(ReadVerbsTest, HealthAsksDaemonAndSubjects) {
  const RunResult good = Run({"health"});
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("daemon         serving\n"
                                  "pools/default  serving\n"));

  daemon_.SetHealth("memtuned.v1/pools/default", false);
  const RunResult bad = Run({"health", "-o", "json"});
  EXPECT_EQ(bad.exit, 1);
  EXPECT_EQ(Json::parse(bad.out)["health"][1]["status"], "NOT_SERVING");
}

TEST_F(ReadVerbsTest, HealthSaysWhoIsInTheWay) {
  daemon_.state().holder_stopped = true;
  const std::string reason =
      "nodes/0/zones/Normal is held by process 4-2 (pid 4242), stopped for "
      "12 s";

  const RunResult result = Run({"health"});

  EXPECT_EQ(result.exit, 0) << "it serves";
  EXPECT_THAT(result.out, HasSubstr("serving, degraded: " + reason + "\n"));
  EXPECT_EQ(RunJson({"health"})["health"][1]["degraded_reason"], reason);
  EXPECT_THAT(Run({"subjects"}).out, HasSubstr("degraded: " + reason));
}

TEST_F(ReadVerbsTest, HealthOfAnUnknownSubjectIsAFinding) {
  const RunResult result = Run({"-s", "pools/other", "health"});

  EXPECT_EQ(result.exit, 1);
  EXPECT_THAT(result.out, HasSubstr("not known to the daemon"));
}

TEST_F(ReadVerbsTest, VersionTellsClientAndDaemon) {
  const RunResult result = Run({"version"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("memtunectl "));
  EXPECT_THAT(result.out,
              HasSubstr("memtuned   9.8.7 at " + daemon_.target() + "\n"));
  EXPECT_EQ(RunJson({"version"})["daemon"]["version"], "9.8.7");
}

TEST_F(ReadVerbsTest, ReadsEverySubjectUnlessOneIsNamed) {
  daemon_.state().subjects = {"pools/a", "pools/b", "pools/c"};

  const std::string all = Run({"zones"}).out;
  for (const char* name : {"pools/a", "pools/b", "pools/c"}) {
    EXPECT_THAT(all, HasSubstr(std::string(name) + " at "));
  }

  const std::string one = Run({"zones", "-s", "pools/b"}).out;
  EXPECT_THAT(one, Not(HasSubstr("pools/a")));
}

TEST_F(ReadVerbsTest, OneFailingSubjectDoesNotHideTheOthers) {
  daemon_.state().subjects = {"pools/a", "pools/b"};
  daemon_.state().failures["ListZones pools/a"] =
      MakeError(grpc::StatusCode::INTERNAL, "no sample yet", "NO_SAMPLE");

  const RunResult result = Run({"zones"});

  EXPECT_EQ(result.exit, 6);
  EXPECT_THAT(result.out, HasSubstr("pools/b at "));
  EXPECT_THAT(result.err, HasSubstr("pools/a: no sample yet"));
}

TEST_F(ReadVerbsTest, ColoursOnlyOnRequestWhenPiped) {
  EXPECT_THAT(Run({"zones"}).out, Not(HasSubstr("\033[")));
  EXPECT_THAT(Run({"zones", "--color", "always"}).out, HasSubstr("\033[32m"));
  EXPECT_THAT(Run({"zones", "--color", "never"}).out, Not(HasSubstr("\033[")));
}

TEST_F(ReadVerbsTest, TerminalsGetColoursAndTheirWidth) {
  const std::vector<std::string> command = {"-t", daemon_.target(),
                                            "processes"};
  const RunResult colour = RunOnTerminal(command, 200);
  EXPECT_EQ(colour.exit, 0) << colour.out;
  EXPECT_THAT(colour.out, HasSubstr("\033[32mrunning\033[0m"));

  const RunResult narrow = RunOnTerminal(command, 79, {{"NO_COLOR", "1"}});
  EXPECT_THAT(narrow.out, Not(HasSubstr("\033[")));
  EXPECT_THAT(narrow.out, HasSubstr("memtu...\n"));
}

TEST_F(ReadVerbsTest, WideIsNotShortenedOnATerminal) {
  EXPECT_THAT(
      RunOnTerminal({"-t", daemon_.target(), "-o", "wide", "processes"}, 40)
          .out,
      HasSubstr("memtune-load\n"));
}

TEST_F(ReadVerbsTest, Utf8LocalesGetThinSpaces) {
  const std::string out = Run({"pagesets"}, {{"LC_ALL", "C.UTF-8"}}).out;

  EXPECT_THAT(out, HasSubstr("1\u2009000"));
  EXPECT_THAT(out, HasSubstr(" \u00b7 policy"));
}

TEST_F(ReadVerbsTest, TakesTheTargetFromTheEnvironment) {
  const RunResult result =
      RunCtl({"subjects"}, {{"MEMTUNED_TARGET", daemon_.socket()}});

  EXPECT_EQ(result.exit, 0) << result.err;
}

}  // namespace
}  // namespace memtuned::ctl
