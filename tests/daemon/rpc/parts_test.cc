// SPDX-License-Identifier: Apache-2.0
// The small parts of daemon/rpc without a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "daemon/rpc/convert.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/names.h"
#include "daemon/rpc/paging.h"
#include "daemon/rpc/request_log.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

TEST(NamesTest, ReadsEveryForm) {
  const auto zone =
      ParseName("pools/a/nodes/1023/zones/Movable", "parent", NameDepth::kZone);
  ASSERT_TRUE(zone.ok());
  EXPECT_EQ(zone->subject, "pools/a");
  EXPECT_EQ(zone->node, 1023);
  EXPECT_EQ(zone->zone, "Movable");
  const auto tunable =
      ParseName("host/tunables/a.b", "name", NameDepth::kTunable);
  ASSERT_TRUE(tunable.ok());
  EXPECT_EQ(tunable->subject, "host");
  EXPECT_EQ(tunable->tunable, "a.b");
}

TEST(NamesTest, RefusesOddForms) {
  const std::string long_name = "pools/" + std::string(300, 'a');
  for (const std::string& text :
       {std::string("pools/a/nodes/-1"), std::string("pools/a/nodes/01"),
        std::string("pools/a/nodes/1024"), std::string("pools/a/nodes"),
        std::string("pools/a/nodes/0/zones/"), std::string("pools/a/zones/x"),
        std::string("pools/a/nodes/0/zones/x/y"), std::string("/pools/a"),
        std::string("pools/a/"), long_name}) {
    EXPECT_FALSE(ParseName(text, "parent", NameDepth::kZone).ok()) << text;
  }
}

TEST(PagingTest, BringsAPositionBackForTheSameRequestOnly) {
  const std::string token = MakePageToken("zones a", {3, 17});

  EXPECT_EQ(*ParsePageToken(token, "zones a"), PagePosition(3, 17));
  EXPECT_FALSE(ParsePageToken(token, "zones b").ok());
  EXPECT_FALSE(ParsePageToken(token + "x", "zones a").ok());
  EXPECT_FALSE(ParsePageToken(MakePageToken("a", {-1, 0}), "a").ok());
}

TEST(ErrorsTest, KeepsTrailersSmallAndUtf8Whole) {
  FieldErrors errors;
  for (int i = 0; i < 100; ++i) {
    errors.Add("field", std::string(4000, 'x') + "\xc3\xa9");
  }

  const grpc::Status status = ToGrpcStatus(errors.ToStatus());

  EXPECT_LT(status.error_message().size() + status.error_details().size(),
            7000u);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INVALID_FIELD");
}

TEST(ErrorsTest, NamesTheCodeWhenNobodyGaveAReason) {
  const grpc::Status status = ToGrpcStatus(absl::DataLossError("broken"));

  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "DATA_LOSS");
  EXPECT_EQ(info.domain(), "memtuned.v1");
}

TEST(ErrorsTest, EscapesAndCutsTheValuesOfCallers) {
  EXPECT_EQ(Quoted("a\nb"), "'a\\nb'");
  EXPECT_LT(Quoted(std::string(100000, 'x')).size(), 80u);
  EXPECT_EQ(Listed({}), "none");
  EXPECT_THAT(Listed(std::vector<std::string>(20, "n")), HasSubstr("4 more"));
}

TEST(RequestLogTest, ForgetsTheOldestAnswersBeyondItsBounds) {
  RequestLog log;
  const auto turn =
      log.Enter(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  ASSERT_TRUE(turn.ok());
  for (size_t i = 0; i < RequestLog::kMaxEntries + 1; ++i) {
    log.Store({"a", "id" + std::to_string(i), "content"}, "answer");
  }
  EXPECT_EQ(*log.Find({"a", "id0", "content"}), "");
  EXPECT_EQ(*log.Find({"a", "id1", "content"}), "answer");

  log.Store({"a", "big", "content"}, std::string(RequestLog::kMaxBytes, 'x'));

  EXPECT_EQ(*log.Find({"a", "id1", "content"}), "");
  EXPECT_EQ(log.Find({"a", "big", "content"})->size(), RequestLog::kMaxBytes);
}

TEST(RequestLogTest, KnowsAnIdOfItsCallerForAnHour) {
  RequestLog log;
  const SteadyTime start{};
  const auto request = [&](const char* caller, std::chrono::minutes after) {
    return RequestLog::Request{caller, "id", "content", start + after};
  };
  log.Store(request("a", std::chrono::minutes(0)), "answer");

  EXPECT_EQ(*log.Find(request("a", std::chrono::minutes(60))), "answer");
  EXPECT_EQ(*log.Find(request("b", std::chrono::minutes(1))), "");
  EXPECT_EQ(*log.Find(request("a", std::chrono::minutes(61))), "");
}

TEST(RequestLogTest, AnEmptyIdIsNone) {
  RequestLog log;

  log.Store({"a", "", "content"}, "answer");

  EXPECT_EQ(*log.Find({"a", "", "content"}), "");
}

TEST(RequestLogTest, GivesTheTurnBackWhenItsHolderIsDone) {
  RequestLog log;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(5);
  {
    const auto first = log.Enter(deadline);
    ASSERT_TRUE(first.ok());
    const auto second = log.Enter(std::chrono::steady_clock::now() +
                                  std::chrono::milliseconds(30));
    EXPECT_EQ(second.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(log.Enter(deadline).ok());
}

TEST(ConvertTest, LeavesCpuRowsOutWhenThereAreTooMany) {
  DrainResult result;
  result.zones.resize(2);
  result.zones[1].zone = "Normal";
  for (size_t i = 0; i <= kMaxCpuDrains; ++i) {
    result.zones[0].by_cpu.emplace_back(static_cast<int>(i), 1);
  }
  EXPECT_TRUE(ToProto("pools/a", result).cpus_omitted());
  EXPECT_EQ(ToProto("pools/a", result).zones(0).cpus_size(), 0);

  result.zones[0].by_cpu.pop_back();
  result.zones[0].by_cpu[0].second = 0;

  EXPECT_FALSE(ToProto("pools/a", result).cpus_omitted());
  EXPECT_EQ(ToProto("pools/a", result).zones(0).cpus_size(),
            static_cast<int>(kMaxCpuDrains) - 1);
  EXPECT_LT(ToProto("pools/a", result).ByteSizeLong(), size_t{3} << 20);
}

}  // namespace
}  // namespace memtuned
