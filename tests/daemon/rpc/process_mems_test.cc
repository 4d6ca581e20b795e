// SPDX-License-Identifier: Apache-2.0
// TuningService.SetMemsAllowed over a real server.
#include <gtest/gtest.h>

#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

class ProcessMemsServiceTest : public testing::Test {
 protected:
  grpc::Status Set(const v1::SetMemsAllowedRequest& request) {
    response_.Clear();
    return server_.tuning().SetMemsAllowed(Soon().get(), request, &response_);
  }
  static v1::SetMemsAllowedRequest Request(const std::string& process) {
    v1::SetMemsAllowedRequest request;
    request.set_parent("pools/default");
    request.set_process(process);
    return request;
  }
  const v1::ValueChange& Value() { return response_.change().values(0); }

  TestServer server_{{FakeOptions{.processes = 2}}};
  v1::SetMemsAllowedResponse response_;
};

TEST_F(ProcessMemsServiceTest, SetsNodesAndAllOfThemAgain) {
  v1::SetMemsAllowedRequest nodes = Request("0-17");
  for (const int node : {0, 2, 3}) nodes.add_nodes(node);
  v1::SetMemsAllowedRequest all = Request("0-17");
  all.set_all_nodes(true);

  ASSERT_TRUE(Set(nodes).ok());
  EXPECT_EQ(response_.change().kind(), v1::CHANGE_KIND_SET);
  EXPECT_EQ(Value().scope(), "processes/0-17");
  EXPECT_EQ(Value().tunable(), "mems_allowed");
  EXPECT_TRUE(Value().before().has_auto_());
  EXPECT_EQ(Value().after().choice(), "0,2-3");
  ASSERT_TRUE(Set(all).ok());
  EXPECT_EQ(Value().before().choice(), "0,2-3");
  EXPECT_TRUE(Value().after().has_auto_());
}

TEST_F(ProcessMemsServiceTest, NamesEachBadField) {
  const grpc::Status none = Set(Request("17"));
  v1::SetMemsAllowedRequest request = Request("0-17");
  request.add_nodes(0);
  request.set_all_nodes(true);
  const grpc::Status both = Set(request);

  EXPECT_EQ(none.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(none).bad_request.field_violations_size(), 2);
  EXPECT_EQ(both.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(both).bad_request.field_violations(0).description(),
            "must be empty when all_nodes is set");
}

TEST_F(ProcessMemsServiceTest, AProcessThatIsGoneIsNotFound) {
  v1::SetMemsAllowedRequest request = Request("0-16");
  request.add_nodes(0);

  EXPECT_EQ(Set(request).error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace memtuned
