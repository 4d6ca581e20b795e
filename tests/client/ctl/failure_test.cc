// SPDX-License-Identifier: Apache-2.0
// What the real binary says and returns when something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/client/ctl/fake_daemon.h"
#include "tests/client/ctl/run_binary.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

TEST(FailureTest, MissingSocketIsUnreachable) {
  const TempDir dir;
  const RunResult result = RunCtl({"-t", dir.File("no.sock"), "zones"});

  EXPECT_EQ(result.exit, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              StartsWith("memtunectl: no daemon at unix:" +
                         dir.File("no.sock") + ": the socket does not exist"));
}

TEST(FailureTest, SocketWithoutListenerIsUnreachable) {
  const TempDir dir;
  const int fd = BindSocket(dir.File("s"), false);

  const RunResult result = RunCtl({"-t", dir.File("s"), "zones"});

  EXPECT_EQ(result.exit, 3);
  EXPECT_THAT(result.err, HasSubstr("nobody listens"));
  close(fd);
}

TEST(FailureTest, ListenerThatNeverAnswersRunsIntoTheDeadline) {
  const TempDir dir;
  const int fd = BindSocket(dir.File("s"), true);
  const auto start = std::chrono::steady_clock::now();

  const RunResult result =
      RunCtl({"-t", dir.File("s"), "--timeout", "300ms", "zones"});

  EXPECT_EQ(result.exit, 3);
  EXPECT_THAT(result.err, HasSubstr("within 300 ms (--timeout)"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  close(fd);
}

TEST(FailureTest, SlowDaemonRunsIntoTheDeadline) {
  FakeDaemon daemon;
  daemon.state().delay = std::chrono::seconds(5);

  for (const char* verb : {"zones", "topology", "tunables", "drain", "stats",
                           "watch", "subjects", "version"}) {
    const RunResult result =
        RunCtl({"-t", daemon.target(), "-s", "pools/default", "--timeout",
                "100ms", verb, "-o", "json"});
    EXPECT_EQ(result.exit, 3) << verb << result.out;
    EXPECT_EQ(Json::parse(result.out)["error"]["status"], "DEADLINE_EXCEEDED")
        << verb;
  }
}

TEST(FailureTest, ErrorsAreJsonToo) {
  FakeDaemon daemon;
  daemon.state().failures["ListZones"] =
      MakeError(grpc::StatusCode::PERMISSION_DENIED, "you are a viewer",
                "ROLE_MISSING", "parent", "needs operator");

  const RunResult result =
      RunCtl({"-t", daemon.target(), "zones", "-o", "json"});

  EXPECT_EQ(result.exit, 4);
  EXPECT_EQ(result.err, "");
  const Json error = Json::parse(result.out)["error"];
  EXPECT_EQ(error["code"], 7);
  EXPECT_EQ(error["exit_code"], 4);
  EXPECT_EQ(error["details"][0]["reason"], "ROLE_MISSING");
  EXPECT_EQ(error["details"][1]["field_violations"][0]["field"], "parent");
}

TEST(FailureTest, UsageErrorsAreJsonToo) {
  const RunResult result = RunCtl({"zonse", "-o", "json"});

  EXPECT_EQ(result.exit, 2);
  EXPECT_EQ(Json::parse(result.out)["error"]["message"],
            "unknown verb 'zonse'; did you mean 'zones'?");
}

TEST(FailureTest, UnknownVerbIsUsage) {
  for (const char* verb : {"zonse", "doctor", "whatif", ""}) {
    const RunResult result = RunCtl({verb});
    EXPECT_EQ(result.exit, 2) << verb;
    EXPECT_THAT(result.err, HasSubstr("unknown verb")) << verb;
  }
  EXPECT_EQ(RunCtl({}).exit, 2);
}

TEST(FailureTest, EachCodeOfTheDaemonHasItsExitStatus) {
  const std::map<grpc::StatusCode, int> expected = {
      {grpc::StatusCode::INVALID_ARGUMENT, 2},
      {grpc::StatusCode::NOT_FOUND, 2},
      {grpc::StatusCode::UNAVAILABLE, 3},
      {grpc::StatusCode::PERMISSION_DENIED, 4},
      {grpc::StatusCode::FAILED_PRECONDITION, 5},
      {grpc::StatusCode::ABORTED, 5},
      {grpc::StatusCode::RESOURCE_EXHAUSTED, 5},
      {grpc::StatusCode::UNIMPLEMENTED, 5},
      {grpc::StatusCode::INTERNAL, 7}};
  FakeDaemon daemon;
  for (const auto& [code, exit] : expected) {
    {
      const std::lock_guard<std::mutex> lock(daemon.state().mutex);
      daemon.state().failures["Drain"] = MakeError(code, "no", "WHY");
    }
    EXPECT_EQ(RunCtl({"-t", daemon.target(), "drain"}).exit, exit) << code;
  }
}

TEST(FailureTest, VersionTellsTheClientsWithoutADaemon) {
  const TempDir dir;
  const RunResult text = RunCtl({"-t", dir.File("no"), "version"});
  EXPECT_EQ(text.exit, 3);
  EXPECT_THAT(text.out, StartsWith("memtunectl "));

  const RunResult json = RunCtl({"-t", dir.File("no"), "version", "-ojson"});
  EXPECT_EQ(json.exit, 3);
  EXPECT_NE(Json::parse(json.out)["client"]["version"], "");
  EXPECT_EQ(Json::parse(json.out)["error"]["exit_code"], 3);
}

TEST(FailureTest, OutputThatCannotBeWrittenIsAnError) {
  const RunResult result =
      RunProgram({"/bin/sh", "-c", BinaryPath() + " help > /dev/full"});

  EXPECT_EQ(result.exit, 7);
  EXPECT_THAT(result.err, HasSubstr("cannot be written"));
}

TEST(FailureTest, DaemonThatServesNothingIsToldSo) {
  FakeDaemon daemon;
  daemon.state().subjects.clear();

  const RunResult read = RunCtl({"-t", daemon.target(), "zones"});
  EXPECT_EQ(read.exit, 0);
  EXPECT_THAT(read.err, HasSubstr("serves no subject"));

  const RunResult change = RunCtl({"-t", daemon.target(), "drain"});
  EXPECT_EQ(change.exit, 2);
  EXPECT_THAT(change.err, HasSubstr("the daemon serves none"));
}

}  // namespace
}  // namespace memtuned::ctl
