// SPDX-License-Identifier: Apache-2.0
// TuningService.SetProcessLimit over a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

class ProcessLimitServiceTest : public testing::Test {
 protected:
  grpc::Status SetLimit(const std::string& process,
                        std::optional<int64_t> bytes) {
    v1::SetProcessLimitRequest request;
    request.set_parent("pools/default");
    request.set_process(process);
    if (bytes) {
      request.mutable_limit()->set_integer(*bytes);
    } else {
      request.mutable_limit()->mutable_auto_();
    }
    response_.Clear();
    return server_.tuning().SetProcessLimit(Soon().get(), request, &response_);
  }

  TestServer server_{{FakeOptions{.processes = 2}}};
  v1::SetProcessLimitResponse response_;
};

TEST_F(ProcessLimitServiceTest, SetsItAndShowsItInTheNextSample) {
  const grpc::Status status = SetLimit("0-17", 8192);

  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::Change& change = response_.change();
  EXPECT_EQ(change.kind(), v1::CHANGE_KIND_SET);
  EXPECT_EQ(change.state(), v1::CHANGE_STATE_APPLIED);
  ASSERT_EQ(change.values_size(), 1);
  EXPECT_EQ(change.values(0).scope(), "processes/0-17");
  EXPECT_EQ(change.values(0).tunable(), "process.max_bytes");
  EXPECT_TRUE(change.values(0).before().has_auto_());
  EXPECT_EQ(change.values(0).after().integer(), 8192);
  v1::ListProcessesRequest request;
  request.set_parent("pools/default");
  v1::ListProcessesResponse listed;
  ASSERT_TRUE(
      server_.stats().ListProcesses(Soon().get(), request, &listed).ok());
  EXPECT_EQ(listed.processes(0).limit_bytes(), 8192);
  EXPECT_TRUE(listed.processes(0).own_limit());
  EXPECT_TRUE(SetLimit("0-17", std::nullopt).ok());
  EXPECT_TRUE(response_.change().values(0).after().has_auto_());
}

TEST_F(ProcessLimitServiceTest, NamesEachBadField) {
  for (const char* process : {"", "17", "0-17-1", "-1-2", "1024-1", "00-17",
                              "1-4194304", "processes/0-17"}) {
    const grpc::Status status = SetLimit(process, 4096);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(DetailsOf(status).bad_request.field_violations(0).field(),
              "process")
        << process;
  }
  const grpc::Status small = SetLimit("0-17", 4095);
  EXPECT_EQ(DetailsOf(small).bad_request.field_violations(0).field(), "limit");
  EXPECT_THAT(DetailsOf(small).bad_request.field_violations(0).description(),
              HasSubstr("allowed 0 or 4096 to 17592186040320"));
  v1::SetProcessLimitRequest empty;
  empty.set_parent("pools/default");
  const grpc::Status both =
      server_.tuning().SetProcessLimit(Soon().get(), empty, &response_);
  EXPECT_EQ(DetailsOf(both).bad_request.field_violations_size(), 2);
}

TEST_F(ProcessLimitServiceTest, AProcessThatIsGoneIsNotFound) {
  const grpc::Status status = SetLimit("0-16", 4096);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailsOf(status).info.reason(), "NOT_FOUND");
}

}  // namespace
}  // namespace memtuned
