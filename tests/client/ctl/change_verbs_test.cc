// SPDX-License-Identifier: Apache-2.0
// set, recalculate and drain of the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/client/ctl/fake_daemon.h"
#include "tests/client/ctl/run_binary.h"

namespace memtuned::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class ChangeVerbsTest : public ::testing::Test {
 protected:
  RunResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--target", daemon_.target()});
    return RunCtl(arguments);
  }

  FakeDaemon daemon_;
};

TEST_F(ChangeVerbsTest, SetShowsBeforeAfterAndEffects) {
  const RunResult result = Run({"set", "pageset.batch_factor=2", "--reason",
                                "a test", "--request-id", "id-1"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out,
            "pools/default at " + daemon_.target() +
                " - applied - generation 13 - etag \"13-cd\"\n"
                "  pageset.batch_factor  1 -> 2\n"
                "effects     0/Normal, 1/Normal batch  63 -> 126 pages\n");
  EXPECT_EQ(daemon_.state().last_set.reason(), "a test");
  EXPECT_EQ(daemon_.state().last_set.request_id(), "id-1");
}

TEST_F(ChangeVerbsTest, SetTakesSeveralTunablesInOneCall) {
  EXPECT_EQ(
      Run({"set", "pageset.batch_factor=0.5", "pageset.policy=fixed"}).exit, 0);

  const v1::SetTunablesRequest& sent = daemon_.state().last_set;
  ASSERT_EQ(sent.assignments_size(), 2);
  EXPECT_DOUBLE_EQ(sent.assignments(0).value().real(), 0.5);
  EXPECT_EQ(sent.assignments(1).value().choice(), "fixed");
}

TEST_F(ChangeVerbsTest, MemsAreSetForAProcessByIdOrPid) {
  const RunResult result = Run({"process", "set-mems", "4242", "0,2-3"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("processes/3-17 mems_allowed  auto -> 0"));
  EXPECT_THAT(daemon_.state().last_mems.nodes(), ElementsAre(0, 2, 3));
  EXPECT_EQ(Run({"process", "set-mems", "4-2", "all", "--dry-run"}).exit, 0);
  EXPECT_EQ(daemon_.state().last_mems.process(), "4-2");
  EXPECT_TRUE(daemon_.state().last_mems.all_nodes());
  EXPECT_TRUE(daemon_.state().last_mems.validate_only());
  EXPECT_EQ(Run({"limit", "4242", "none"}).exit, 0);
  EXPECT_EQ(daemon_.state().last_limit.process(), "3-17");
}

TEST_F(ChangeVerbsTest, ProcessNamesWhatIsWrong) {
  daemon_.state().pid_twice = true;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"migrate", "3-17", "0"}, "action is 'migrate'; allowed set-mems"},
      {{"set-mems", "3-17", "1024"}, "nodes are '1024'; allowed all, or"},
      {{"set-mems", "3-17", ""}, "nodes are ''; allowed all, or"},
      {{"set-mems", "1", "0"}, "has no process of pid 1; memtunectl processes"},
      {{"set-mems", "4242", "0"}, "is attached as 3-17, 4-2; give one"}};
  for (auto [words, error] : cases) {
    words.insert(words.begin(), "process");
    const RunResult result = Run(words);
    EXPECT_EQ(result.exit, 2) << error;
    EXPECT_THAT(result.err, HasSubstr(error));
  }
}

TEST_F(ChangeVerbsTest, LimitIsSetForOneProcess) {
  const RunResult result =
      Run({"limit", "3-17", "512MiB", "--reason", "it leaks"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out,
            "pools/default at " + daemon_.target() +
                " - applied - generation 13 - etag \"13-cd\"\n"
                "  processes/3-17 process.max_bytes  auto -> 536870912\n");
  EXPECT_EQ(daemon_.state().last_limit.process(), "3-17");
  EXPECT_EQ(daemon_.state().last_limit.reason(), "it leaks");
  EXPECT_EQ(Run({"limit", "3-17", "none", "--dry-run"}).exit, 0);
  EXPECT_EQ(daemon_.state().last_limit.limit().integer(), 0);
  EXPECT_TRUE(daemon_.state().last_limit.validate_only());
  EXPECT_EQ(Run({"limit", "3-17", "auto"}).exit, 0);
  EXPECT_TRUE(daemon_.state().last_limit.limit().has_auto_());
}

TEST_F(ChangeVerbsTest, DryRunChangesNothing) {
  const RunResult result = Run({"set", "pageset.batch_factor=2", "--dry-run"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("plan only, nothing changed"));
  EXPECT_TRUE(daemon_.state().last_set.validate_only());
  EXPECT_EQ(daemon_.state().generation, 12);
}

TEST_F(ChangeVerbsTest, StaleEtagIsRefused) {
  const RunResult result =
      Run({"set", "pageset.batch_factor=2", "--etag", "11-xx"});

  EXPECT_EQ(result.exit, 5);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("etag \"11-xx\" (ETAG_MISMATCH)\n"));

  EXPECT_EQ(Run({"set", "pageset.batch_factor=2", "--etag", "12-ab"}).exit, 0);
}

TEST_F(ChangeVerbsTest, BadValuesNeverReachTheDaemon) {
  const RunResult result = Run({"set", "pageset.batch_factor=9"});

  EXPECT_EQ(result.exit, 2);
  EXPECT_EQ(result.err,
            "memtunectl: pageset.batch_factor is 9; allowed 0.25 to 8\n");
  EXPECT_EQ(daemon_.state().calls, 0);
}

TEST_F(ChangeVerbsTest, FieldsThatTheDaemonRefusesAreNamed) {
  daemon_.state().failures["SetTunables"] =
      MakeError(grpc::StatusCode::INVALID_ARGUMENT, "1 field is not valid",
                "INVALID_FIELD", "reason", "empty; allowed 1 to 1024 bytes");

  const RunResult result = Run({"set", "pageset.batch_factor=2"});

  EXPECT_EQ(result.exit, 2);
  EXPECT_THAT(result.err,
              HasSubstr("  reason: empty; allowed 1 to 1024 bytes\n"));
}

TEST_F(ChangeVerbsTest, ChangesNeedASubjectWhenThereAreSeveral) {
  daemon_.state().subjects = {"host", "pools/default"};

  const RunResult result = Run({"drain"});
  EXPECT_EQ(result.exit, 2);
  EXPECT_EQ(result.err,
            "memtunectl: drain changes something and needs --subject; the "
            "daemon serves host, pools/default\n");

  EXPECT_EQ(Run({"-s", "host", "drain"}).exit, 0);
  EXPECT_EQ(daemon_.state().last_drain.parent(), "host");
}

TEST_F(ChangeVerbsTest, UnknownSubjectIsNamed) {
  const RunResult result = Run({"-s", "pools/nope", "recalculate"});

  EXPECT_EQ(result.exit, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no subject \"pools/nope\""));
}

TEST_F(ChangeVerbsTest, RecalculateSendsItsScope) {
  const RunResult result = Run({"recalc", "--node", "0,1000", "--zone",
                                "Normal", "--reason", "more memory"});

  EXPECT_EQ(result.exit, 0) << result.err;
  const v1::Scope& scope = daemon_.state().last_recalculate.scope();
  EXPECT_THAT(scope.nodes(), ElementsAre(0, 1000));
  EXPECT_THAT(scope.zones(), ElementsAre("Normal"));
  EXPECT_THAT(result.out, HasSubstr("batch  63 -> 126 pages"));
}

TEST_F(ChangeVerbsTest, DrainShowsBeforeAfterAndLargestOrder) {
  const RunResult result = Run({"drain", "--cpu", "4-5"});

  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out,
            "pools/default at " + daemon_.target() +
                " - 36299 pages left pagesets - generation 13 - etag "
                "\"13-cd\"\n"
                "ZONE      BEFORE  AFTER  LARGEST-FREE-ORDER\n"
                "0/Normal   36472    173  - -> 10\n");
  EXPECT_THAT(daemon_.state().last_drain.scope().cpus(), ElementsAre(4, 5));
}

TEST_F(ChangeVerbsTest, DrainWideShowsEachCpu) {
  EXPECT_THAT(
      Run({"drain", "-o", "wide"}).out,
      HasSubstr("ZONE      CPU  GAVE-BACK\n0/Normal    5        378\n"));
}

TEST_F(ChangeVerbsTest, DrainThatLeavesPagesIsPartial) {
  daemon_.state().not_drained = {"cpu 7: its pageset was busy"};

  const RunResult result = Run({"drain"});

  EXPECT_EQ(result.exit, 6);
  EXPECT_THAT(result.out,
              HasSubstr("not drained cpu 7: its pageset was busy\n"));
}

TEST_F(ChangeVerbsTest, JsonIsTheResponse) {
  const RunResult set = Run({"set", "pageset.batch_factor=2", "-o", "json"});
  EXPECT_EQ(Json::parse(set.out)["change"]["state"], "CHANGE_STATE_APPLIED");

  const RunResult drain = Run({"drain", "-o", "json"});
  EXPECT_EQ(Json::parse(drain.out)["result"]["zones"][0]["pages_after"], "173");

  const RunResult plan = Run({"recalc", "--dry-run", "-o", "json"});
  EXPECT_EQ(Json::parse(plan.out)["change"]["state"], "CHANGE_STATE_PLANNED");
}

}  // namespace
}  // namespace memtuned::ctl
