// SPDX-License-Identifier: Apache-2.0
// Errors of calls: details kept, printed and turned into JSON.
#include "client/ctl/rpc_error.h"

#include <gmock/gmock.h>
#include <google/protobuf/duration.pb.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace memtuned::ctl {
namespace {

using ::testing::ElementsAre;

grpc::Status BadValue() {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("assignments[0].value");
  violation->set_description("9; allowed 0.25 to 8");
  google::rpc::ErrorInfo info;
  info.set_reason("INVALID_FIELD");
  info.set_domain("memtuned.v1");
  (*info.mutable_metadata())["b"] = "2";
  (*info.mutable_metadata())["a"] = "1";
  google::rpc::Status details;
  details.set_code(3);
  details.add_details()->PackFrom(info);
  details.add_details()->PackFrom(bad_request);
  return {grpc::StatusCode::INVALID_ARGUMENT, "bad value",
          details.SerializeAsString()};
}

TEST(RpcErrorTest, PrintsMessageThenDetails) {
  EXPECT_THAT(ErrorLines(FromGrpcStatus(BadValue())),
              ElementsAre("bad value (INVALID_FIELD)", "a: 1", "b: 2",
                          "assignments[0].value: 9; allowed 0.25 to 8"));
}

TEST(RpcErrorTest, SaysNothingTwice) {
  google::rpc::ErrorInfo info;
  info.set_reason("INVALID_ARGUMENT");
  (*info.mutable_metadata())["which"] = "empty";
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("reason");
  violation->set_description("empty");
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  details.add_details()->PackFrom(bad_request);

  EXPECT_THAT(ErrorLines(FromGrpcStatus(
                  grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                               "reason: empty (and 1 more, see the details)",
                               details.SerializeAsString()))),
              ElementsAre("reason: empty (and 1 more, see the details)"));
}

TEST(RpcErrorTest, KeepsDetailsUnderANewMessage) {
  const absl::Status renamed =
      WithMessage(FromGrpcStatus(BadValue()), "another");

  EXPECT_EQ(renamed.message(), "another");
  EXPECT_EQ(ErrorReason(renamed), "INVALID_FIELD");
}

TEST(RpcErrorTest, JsonHoldsCodeStatusMessageExitCodeAndDetails) {
  const auto json =
      nlohmann::json::parse(ErrorJson(FromGrpcStatus(BadValue())));

  const auto& error = json.at("error");
  EXPECT_EQ(error.at("code"), 3);
  EXPECT_EQ(error.at("status"), "INVALID_ARGUMENT");
  EXPECT_EQ(error.at("message"), "bad value");
  EXPECT_EQ(error.at("exit_code"), 2);
  EXPECT_EQ(error.at("details").at(0).at("reason"), "INVALID_FIELD");
  EXPECT_EQ(error.at("details").at(1).at("field_violations").at(0).at("field"),
            "assignments[0].value");
}

TEST(RpcErrorTest, SurvivesDetailsThatAreNoMessage) {
  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::ABORTED, "stale", std::string("\xff\xfe\x00", 3)));

  EXPECT_THAT(ErrorLines(status), ElementsAre("stale"));
  EXPECT_EQ(ErrorReason(status), "");
}

TEST(RpcErrorTest, NamesDetailsOfUnknownType) {
  google::rpc::Status details;
  details.add_details()->set_type_url("type.googleapis.com/other.Thing");
  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::ABORTED, "x", details.SerializeAsString()));

  EXPECT_THAT(ErrorLines(status),
              ElementsAre("x", "detail: type.googleapis.com/other.Thing"));
  const auto json = nlohmann::json::parse(ErrorJson(status));
  EXPECT_EQ(json["error"]["details"][0]["@type"],
            "type.googleapis.com/other.Thing");
}

TEST(RpcErrorTest, HidesTerminalControlFromTheNetwork) {
  EXPECT_THAT(ErrorLines(absl::InternalError("a\033[2Jb\nc")),
              ElementsAre("a [2Jb c"));
}

TEST(RpcErrorTest, FallsBackToTheCodeWithoutAMessage) {
  EXPECT_THAT(ErrorLines(absl::Status(absl::StatusCode::kAborted, "")),
              ElementsAre("ABORTED"));
}

TEST(RpcErrorTest, InvalidUtf8StaysPrintableJson) {
  const std::string json = ErrorJson(absl::InternalError("\xff"));

  EXPECT_FALSE(nlohmann::json::parse(json, nullptr, false).is_discarded());
}

TEST(RpcErrorTest, SaysWhenToTryAgain) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(2);
  retry.mutable_retry_delay()->set_nanos(500000000);
  google::rpc::Status details;
  details.add_details()->PackFrom(retry);

  EXPECT_THAT(ErrorLines(FromGrpcStatus(
                  grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy",
                               details.SerializeAsString()))),
              ElementsAre("busy", "try again in 2.50 s"));
}

}  // namespace
}  // namespace memtuned::ctl
