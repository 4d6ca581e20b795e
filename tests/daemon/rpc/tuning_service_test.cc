// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

v1::SetTunablesRequest SetFactor(double factor) {
  v1::SetTunablesRequest request;
  request.set_parent("pools/default");
  v1::Assignment& assignment = *request.add_assignments();
  assignment.set_tunable("pageset.batch_factor");
  assignment.mutable_value()->set_real(factor);
  return request;
}

class TuningServiceTest : public testing::Test {
 protected:
  grpc::Status Set(const v1::SetTunablesRequest& request) {
    response_.Clear();
    return server_.tuning().SetTunables(Soon().get(), request, &response_);
  }
  // The one field violation of an INVALID_ARGUMENT.
  google::rpc::BadRequest::FieldViolation Violation(
      const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << status.error_message();
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.info.domain(), "memtuned.v1");
    EXPECT_EQ(details.bad_request.field_violations_size(), 1);
    return details.bad_request.field_violations_size() > 0
               ? details.bad_request.field_violations(0)
               : google::rpc::BadRequest::FieldViolation();
  }

  TestServer server_;
  v1::SetTunablesResponse response_;
};

TEST_F(TuningServiceTest, ListsTheTableOfTunables) {
  v1::ListTunablesRequest request;
  request.set_parent("pools/default");
  request.set_page_size(3);
  std::vector<v1::Tunable> tunables;
  std::string etag;

  do {
    v1::ListTunablesResponse response;
    ASSERT_TRUE(
        server_.tuning().ListTunables(Soon().get(), request, &response).ok());
    tunables.insert(tunables.end(), response.tunables().begin(),
                    response.tunables().end());
    etag = response.etag();
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());

  ASSERT_EQ(tunables.size(), static_cast<size_t>(kNumTunables));
  EXPECT_EQ(etag, server_.subject().Version().etag);
  EXPECT_EQ(tunables[0].value().choice(), "memtuned");
  EXPECT_EQ(tunables[0].range().choices_size(), 5);
  EXPECT_EQ(tunables[1].name(), "pools/default/tunables/pageset.batch_factor");
  EXPECT_EQ(tunables[1].range().max(), 8);
  EXPECT_EQ(tunables[1].range().text(), "0.25 to 8");
  EXPECT_EQ(tunables[1].origin(), v1::ORIGIN_DEFAULT);
  EXPECT_TRUE(tunables[1].writable());
  EXPECT_TRUE(tunables[5].value().has_auto_());
  EXPECT_EQ(tunables[5].kernel_name(), "vm.min_free_kbytes");
}

TEST_F(TuningServiceTest, GetsOneTunableAndNamesAllWhenItIsUnknown) {
  v1::GetTunableRequest request;
  request.set_name("pools/default/tunables/watermark.scale_factor");
  v1::GetTunableResponse response;

  ASSERT_TRUE(
      server_.tuning().GetTunable(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.tunable().value().integer(), 10);
  request.set_name("pools/default/tunables/watermark.scale");
  const grpc::Status status =
      server_.tuning().GetTunable(Soon().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("watermark.scale_factor"));
}

TEST_F(TuningServiceTest, SetsATunableAndAnswersWithTheRecord) {
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_reason("more batch");

  const grpc::Status status = Set(request);

  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::Change& change = response_.change();
  EXPECT_EQ(change.name(), "pools/default/changes/1");
  EXPECT_EQ(change.generation(), 1);
  EXPECT_EQ(change.kind(), v1::CHANGE_KIND_SET);
  EXPECT_EQ(change.state(), v1::CHANGE_STATE_APPLIED);
  EXPECT_EQ(change.reason(), "more batch");
  EXPECT_EQ(change.caller(), "uid:" + std::to_string(geteuid()));
  EXPECT_EQ(change.etag(), server_.subject().Version().etag);
  ASSERT_EQ(change.values_size(), 1);
  EXPECT_EQ(change.values(0).before().real(), 1);
  EXPECT_EQ(change.values(0).after().real(), 2);
  ASSERT_EQ(change.effects_size(), 2);
  EXPECT_EQ(change.effects(1).where(), "nodes/1000/zones/Normal");
  EXPECT_EQ(change.effects(1).before(), 63);
  EXPECT_EQ(change.effects(1).after(), 126);
}

TEST_F(TuningServiceTest, ShowsAChangeInTheNextStatistics) {
  ASSERT_TRUE(Set(SetFactor(4)).ok());
  v1::ListZonesRequest request;
  request.set_parent("pools/default");
  v1::ListZonesResponse response;

  ASSERT_TRUE(server_.stats().ListZones(Soon().get(), request, &response).ok());

  EXPECT_EQ(response.zones(0).pagesets().batch(), 252);
  EXPECT_EQ(response.sample().generation(), 1);
}

TEST_F(TuningServiceTest, PlansWithoutChangingAnything) {
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_validate_only(true);

  ASSERT_TRUE(Set(request).ok());

  EXPECT_EQ(response_.change().state(), v1::CHANGE_STATE_PLANNED);
  EXPECT_EQ(response_.change().name(), "");
  EXPECT_EQ(response_.change().effects_size(), 2);
  EXPECT_FALSE(response_.change().has_complete_time());
  EXPECT_EQ(server_.subject().applied(), 0);
  EXPECT_EQ(server_.subject().Version().generation, 0);
}

TEST_F(TuningServiceTest, RefusesACallWithoutADeadline) {
  grpc::ClientContext context;

  const grpc::Status status =
      server_.tuning().SetTunables(&context, SetFactor(2), &response_);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).info.reason(), "DEADLINE_MISSING");
  EXPECT_EQ(server_.subject().applied(), 0);
}

TEST_F(TuningServiceTest, NamesValueFieldAndAllowedRange) {
  const auto violation = Violation(Set(SetFactor(9)));

  EXPECT_EQ(violation.field(), "assignments[0].value");
  EXPECT_EQ(violation.description(),
            "pageset.batch_factor is 9; allowed 0.25 to 8");
  EXPECT_EQ(server_.subject().applied(), 0);
}

TEST_F(TuningServiceTest, RefusesNumbersThatAreNone) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Violation(Set(SetFactor(value))).field(), "assignments[0].value");
  }
}

TEST_F(TuningServiceTest, RefusesAMissingValue) {
  v1::SetTunablesRequest request = SetFactor(1);
  request.mutable_assignments(0)->clear_value();

  const auto violation = Violation(Set(request));

  EXPECT_EQ(violation.field(), "assignments[0].value");
  EXPECT_THAT(violation.description(), HasSubstr("is missing"));
  EXPECT_THAT(violation.description(), HasSubstr("0.25 to 8"));
}

TEST_F(TuningServiceTest, RefusesAValueOfAnotherKind) {
  v1::SetTunablesRequest request = SetFactor(1);
  request.mutable_assignments(0)->mutable_value()->set_choice("fixed");

  EXPECT_EQ(Violation(Set(request)).field(), "assignments[0].value");
}

TEST_F(TuningServiceTest, AcceptsAnIntegerForAReal) {
  v1::SetTunablesRequest request = SetFactor(1);
  request.mutable_assignments(0)->mutable_value()->set_integer(2);

  ASSERT_TRUE(Set(request).ok());

  EXPECT_EQ(response_.change().values(0).after().real(), 2);
}

TEST_F(TuningServiceTest, ReportsEveryBadAssignmentAtOnce) {
  v1::SetTunablesRequest request = SetFactor(9);
  request.add_assignments()->set_tunable("no.such");
  v1::Assignment& third = *request.add_assignments();
  third.set_tunable("pageset.policy");
  third.set_scope("pools/default/nodes/0");
  third.mutable_value()->set_choice("fixed");

  const grpc::Status status = Set(request);

  const Details details = DetailsOf(status);
  ASSERT_EQ(details.bad_request.field_violations_size(), 3);
  EXPECT_EQ(details.bad_request.field_violations(1).field(),
            "assignments[1].tunable");
  EXPECT_THAT(details.bad_request.field_violations(1).description(),
              HasSubstr("pageset.free_high_factor"));
  EXPECT_EQ(details.bad_request.field_violations(2).field(),
            "assignments[2].scope");
}

TEST_F(TuningServiceTest, IsAllOrNothing) {
  v1::SetTunablesRequest request = SetFactor(2);
  v1::Assignment& bad = *request.add_assignments();
  bad.set_tunable("watermark.scale_factor");
  bad.mutable_value()->set_integer(3001);

  EXPECT_EQ(Violation(Set(request)).field(), "assignments[1].value");

  v1::GetTunableRequest get;
  get.set_name("pools/default/tunables/pageset.batch_factor");
  v1::GetTunableResponse got;
  ASSERT_TRUE(server_.tuning().GetTunable(Soon().get(), get, &got).ok());
  EXPECT_EQ(got.tunable().value().real(), 1);
}

TEST_F(TuningServiceTest, RefusesNoneOrTooManyOrDoubleAssignments) {
  v1::SetTunablesRequest none;
  none.set_parent("pools/default");
  v1::SetTunablesRequest many = none;
  for (int i = 0; i < 65; ++i) many.add_assignments();
  v1::SetTunablesRequest twice = SetFactor(2);
  *twice.add_assignments() = twice.assignments(0);

  EXPECT_EQ(Violation(Set(none)).field(), "assignments");
  EXPECT_EQ(Violation(Set(many)).field(), "assignments");
  EXPECT_EQ(Violation(Set(twice)).field(), "assignments[1].tunable");
}

TEST_F(TuningServiceTest, RefusesLongOrUnprintableTexts) {
  v1::SetTunablesRequest long_reason = SetFactor(2);
  long_reason.set_reason(std::string(1025, 'x'));
  v1::SetTunablesRequest two_lines = SetFactor(2);
  two_lines.set_reason("a\nlevel=error");
  v1::SetTunablesRequest long_id = SetFactor(2);
  long_id.set_request_id(std::string(129, 'x'));

  EXPECT_EQ(Violation(Set(long_reason)).field(), "reason");
  EXPECT_EQ(Violation(Set(two_lines)).field(), "reason");
  EXPECT_EQ(Violation(Set(long_id)).field(), "request_id");
}

TEST_F(TuningServiceTest, RefusesAnOldEtagAndTellsThePresentOne) {
  const std::string old = server_.subject().Version().etag;
  server_.subject().SetForeign(TunableId::kWatermarkScaleFactor, int64_t{20});
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_etag(old);

  const grpc::Status status = Set(request);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  const Details details = DetailsOf(status);
  EXPECT_EQ(details.info.reason(), "ETAG_MISMATCH");
  EXPECT_EQ(details.info.metadata().at("etag"),
            server_.subject().Version().etag);
  request.set_etag(details.info.metadata().at("etag"));
  EXPECT_TRUE(Set(request).ok());
}

TEST_F(TuningServiceTest, RefusesAReadOnlyTunable) {
  server_.subject().SetReadOnly(TunableId::kPagesetBatchFactor, "test says so");

  const grpc::Status status = Set(SetFactor(2));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("test says so"));
  EXPECT_EQ(DetailsOf(status).info.reason(), "READ_ONLY");
}

TEST_F(TuningServiceTest, RefusesWhatComesLater) {
  v1::SetTunablesRequest confirm = SetFactor(2);
  confirm.mutable_confirm_within()->set_seconds(60);
  v1::SetTunablesRequest risks = SetFactor(2);
  risks.add_accept_risks("everything");

  const grpc::Status status = Set(confirm);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(DetailsOf(status).info.reason(), "NOT_IMPLEMENTED");
  EXPECT_EQ(DetailsOf(status).bad_request.field_violations(0).field(),
            "confirm_within");
  EXPECT_EQ(Violation(Set(risks)).field(), "accept_risks[0]");
  EXPECT_EQ(server_.subject().applied(), 0);
}

TEST_F(TuningServiceTest, AnswersARepeatedRequestIdWithoutChangingAnything) {
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_request_id("one");
  ASSERT_TRUE(Set(request).ok());
  const v1::SetTunablesResponse first = response_;
  ASSERT_TRUE(Set(SetFactor(3)).ok());

  ASSERT_TRUE(Set(request).ok());

  EXPECT_EQ(response_.SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(server_.subject().applied(), 2);
}

TEST_F(TuningServiceTest, RefusesARequestIdUsedForSomethingElse) {
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_request_id("one");
  ASSERT_TRUE(Set(request).ok());
  v1::SetTunablesRequest other = SetFactor(3);
  other.set_request_id("one");
  v1::RecalculateRequest recalculate;
  recalculate.set_parent("pools/default");
  recalculate.set_request_id("one");
  v1::RecalculateResponse recalculated;

  const grpc::Status status = Set(other);
  const grpc::Status status2 =
      server_.tuning().Recalculate(Soon().get(), recalculate, &recalculated);

  EXPECT_EQ(Violation(status).field(), "request_id");
  EXPECT_EQ(DetailsOf(status).info.reason(), "REQUEST_ID_REUSED");
  EXPECT_EQ(Violation(status2).field(), "request_id");
  EXPECT_EQ(server_.subject().applied(), 1);
}

TEST_F(TuningServiceTest, LetsARefusedRequestIdBeTriedAgain) {
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_request_id("one");
  request.set_etag("wrong");
  EXPECT_EQ(Set(request).error_code(), grpc::StatusCode::ABORTED);

  request.set_etag(server_.subject().Version().etag);

  EXPECT_TRUE(Set(request).ok());
}

TEST_F(TuningServiceTest, AppliesOnceWhenTheSameIdComesTwiceAtTheSameTime) {
  server_.subject().SetApplyTime(std::chrono::milliseconds(100));
  v1::SetTunablesRequest request = SetFactor(2);
  request.set_request_id("one");
  v1::SetTunablesResponse answers[4];
  std::vector<std::thread> threads;

  for (auto& answer : answers) {
    threads.emplace_back([&] {
      EXPECT_TRUE(
          server_.tuning().SetTunables(Soon().get(), request, &answer).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(server_.subject().applied(), 1);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.change().generation(), 1);
  }
}

TEST_F(TuningServiceTest, WaitsForItsTurnNoLongerThanItsDeadline) {
  server_.subject().SetApplyTime(std::chrono::milliseconds(600));
  std::thread slow([&] {
    v1::SetTunablesResponse response;
    EXPECT_TRUE(server_.tuning()
                    .SetTunables(Soon().get(), SetFactor(2), &response)
                    .ok());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(100));

  const grpc::Status status =
      server_.tuning().SetTunables(&context, SetFactor(3), &response_);
  slow.join();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server_.subject().applied(), 1);
}

TEST_F(TuningServiceTest, RecalculatesWithinAScopeThatExists) {
  v1::RecalculateRequest request;
  request.set_parent("pools/default");
  request.mutable_scope()->add_nodes(1000);
  v1::RecalculateResponse response;

  ASSERT_TRUE(
      server_.tuning().Recalculate(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.change().kind(), v1::CHANGE_KIND_RECALCULATE);
  EXPECT_EQ(response.change().generation(), 1);
  request.mutable_scope()->add_cpus(0);
  const grpc::Status status =
      server_.tuning().Recalculate(Soon().get(), request, &response);

  EXPECT_EQ(Violation(status).field(), "scope.cpus");
}

TEST_F(TuningServiceTest, DrainsOnlyTheScope) {
  v1::DrainRequest request;
  request.set_parent("pools/default");
  request.mutable_scope()->add_nodes(0);
  request.mutable_scope()->add_cpus(3);
  request.mutable_scope()->add_cpus(5);
  v1::DrainResponse response;

  const grpc::Status status =
      server_.tuning().Drain(Soon().get(), request, &response);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.change().kind(), v1::CHANGE_KIND_DRAIN);
  ASSERT_EQ(response.result().zones_size(), 1);
  const v1::ZoneDrain& zone = response.result().zones(0);
  EXPECT_EQ(zone.zone(), "pools/default/nodes/0/zones/Normal");
  EXPECT_EQ(zone.pages_before(), 80);
  EXPECT_EQ(zone.pages_after(), 60);
  ASSERT_EQ(zone.cpus_size(), 2);
  EXPECT_EQ(zone.cpus(1).cpu(), 5);
  EXPECT_EQ(zone.cpus(1).pages(), 10);
}

TEST_F(TuningServiceTest, RefusesAScopeOfThingsThatAreNotThere) {
  const auto drain = [&](auto fill) {
    v1::DrainRequest request;
    request.set_parent("pools/default");
    fill(*request.mutable_scope());
    v1::DrainResponse response;
    return Violation(server_.tuning().Drain(Soon().get(), request, &response));
  };

  const auto node = drain([](v1::Scope& scope) { scope.add_nodes(1); });
  EXPECT_EQ(node.field(), "scope.nodes");
  EXPECT_THAT(node.description(), HasSubstr("0, 1000"));
  EXPECT_EQ(drain([](v1::Scope& s) { s.add_zones("DMA"); }).field(),
            "scope.zones");
  EXPECT_EQ(drain([](v1::Scope& s) { s.add_cpus(8); }).field(), "scope.cpus");
  EXPECT_EQ(drain([](v1::Scope& s) { s.add_cpus(-1); }).field(), "scope.cpus");
  EXPECT_EQ(drain([](v1::Scope& s) {
              s.add_nodes(0);
              s.add_nodes(0);
            }).field(),
            "scope.nodes");
  EXPECT_EQ(server_.subject().applied(), 0);
}

TEST_F(TuningServiceTest, RefusesADrainWithADuration) {
  v1::DrainRequest request;
  request.set_parent("pools/default");
  request.mutable_max_duration()->set_seconds(1);
  v1::DrainResponse response;

  EXPECT_EQ(
      server_.tuning().Drain(Soon().get(), request, &response).error_code(),
      grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace memtuned
