// SPDX-License-Identifier: Apache-2.0
// watch of the real binary: rows, JSON lines, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/client/ctl/fake_daemon.h"
#include "tests/client/ctl/run_binary.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST(WatchTest, RowsShowRatesOfEachInterval) {
  FakeDaemon daemon;
  const RunResult result =
      RunCtl({"-t", daemon.target(), "watch", "--count", "2"}, {{"TZ", "UTC"}});

  EXPECT_EQ(result.exit, 0) << result.err;
  // 1700000001 is 22:13:21 UTC; the first sample has no rates yet.
  EXPECT_THAT(
      result.out,
      HasSubstr("22:13:21  0/Normal   128.0 MiB            512     63     "
                "378..4096           -          -             -          -    "
                "         -            -          -  ready\n"));
  // Each sample is a second on: 20000 blocks, 1000 refills of 7 pages.
  EXPECT_THAT(
      result.out,
      HasSubstr("22:13:22  0/Normal   128.0 MiB            512     63     "
                "378..4096       20000       1000          7.00        300    "
                "      2000         0.10     25.0 %  ready\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("22:13:23")));
}

TEST(WatchTest, JsonIsALineEachMessage) {
  FakeDaemon daemon;
  daemon.state().fell_behind_after = 1;
  const RunResult result =
      RunCtl({"-t", daemon.target(), "watch", "-n", "3", "-o", "json"});

  EXPECT_EQ(result.exit, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<Json> messages;
  for (std::string line; std::getline(lines, line);) {
    messages.push_back(Json::parse(line));
  }
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0]["snapshot"]["name"], "pools/default");
  EXPECT_EQ(messages[1]["fell_behind"]["missed"], "3");
}

TEST(WatchTest, SaysWhenItFellBehind) {
  FakeDaemon daemon;
  daemon.state().fell_behind_after = 1;

  EXPECT_THAT(RunCtl({"-t", daemon.target(), "watch", "-n", "2"}).out,
              HasSubstr("pools/default: fell behind, 3 samples missed\n"));
}

TEST(WatchTest, FollowsAllSubjectsAtOnce) {
  FakeDaemon daemon;
  daemon.state().subjects = {"pools/a", "pools/b"};
  const RunResult result = RunCtl({"-t", daemon.target(), "watch", "-n", "2"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("pools/a        0/Normal"));
  EXPECT_THAT(result.out, HasSubstr("pools/b        0/Normal"));
}

TEST(WatchTest, InterruptEndsItCleanly) {
  FakeDaemon daemon;
  Running watch({BinaryPath(), "-t", daemon.target(), "watch"});
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (watch.OutSoFar().find("0/Normal") == std::string::npos &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  watch.Signal(SIGINT);
  const RunResult result = watch.Wait();

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("0/Normal"));
  EXPECT_EQ(result.err, "");
}

TEST(WatchTest, StoppingDaemonIsUnreachable) {
  FakeDaemon daemon;
  daemon.state().watch_ends_after = 2;
  const RunResult result = RunCtl({"-t", daemon.target(), "watch"});

  EXPECT_EQ(result.exit, 3);
  EXPECT_THAT(result.err,
              HasSubstr("the watch of pools/default ended: the daemon is "
                        "stopping"));
}

TEST(WatchTest, UnknownSubjectIsRefused) {
  FakeDaemon daemon;
  const RunResult result =
      RunCtl({"-t", daemon.target(), "-s", "pools/nope", "watch"});

  EXPECT_EQ(result.exit, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no subject"));
}

TEST(WatchTest, EndsWhenNobodyReads) {
  FakeDaemon daemon;
  const RunResult result =
      RunProgram({"/bin/bash", "-c",
                  "'" + BinaryPath() + "' -t " + daemon.target() +
                      " watch | head -n 2; echo rows ${#PIPESTATUS[@]}"});

  EXPECT_THAT(result.out, HasSubstr("rows 2"));
}

}  // namespace
}  // namespace memtuned::ctl
