// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TopologyServiceTest, ListsSubjectsByNameAcrossPages) {
  TestServer server(
      {{.name = "pools/b"}, {.name = "pools/a"}, {.name = "pools/c"}});
  v1::ListSubjectsRequest request;
  request.set_page_size(2);
  v1::ListSubjectsResponse first, second;

  ASSERT_TRUE(
      server.topology().ListSubjects(Soon().get(), request, &first).ok());
  request.set_page_token(first.next_page_token());
  ASSERT_TRUE(
      server.topology().ListSubjects(Soon().get(), request, &second).ok());

  ASSERT_EQ(first.subjects_size(), 2);
  EXPECT_EQ(first.subjects(0).name(), "pools/a");
  EXPECT_EQ(first.subjects(1).name(), "pools/b");
  EXPECT_EQ(first.daemon_version(), "1.2.3");
  ASSERT_EQ(second.subjects_size(), 1);
  EXPECT_EQ(second.subjects(0).name(), "pools/c");
  EXPECT_EQ(second.next_page_token(), "");
}

TEST(TopologyServiceTest, DescribesASubject) {
  TestServer server;
  server.sampler().Refresh(SteadyTime::max());
  v1::ListSubjectsResponse response;

  ASSERT_TRUE(server.topology().ListSubjects(Soon().get(), {}, &response).ok());

  const v1::Subject& subject = response.subjects(0);
  EXPECT_EQ(subject.kind(), v1::SUBJECT_KIND_POOL);
  EXPECT_EQ(subject.state(), v1::SUBJECT_STATE_READY);
  EXPECT_EQ(subject.etag(), server.subject().Version().etag);
  EXPECT_EQ(subject.page_size_bytes(), 4096);
  EXPECT_EQ(subject.size_bytes(), 2 * 65536 * 4096ll);
  EXPECT_EQ(subject.policy(), "memtuned");
  EXPECT_THAT(subject.capabilities(),
              ElementsAre("set", "recalculate", "drain", "processes", "watch"));
}

TEST(TopologyServiceTest, GivesNodesByOsIndexWithTheirZones) {
  TestServer server;
  server.sampler().Refresh(SteadyTime::max());
  v1::GetTopologyRequest request;
  request.set_name("pools/default");
  v1::GetTopologyResponse response;

  ASSERT_TRUE(
      server.topology().GetTopology(Soon().get(), request, &response).ok());

  const v1::Topology& topology = response.topology();
  EXPECT_EQ(topology.source(), v1::TOPOLOGY_SOURCE_SYNTHETIC);
  ASSERT_EQ(topology.nodes_size(), 2);
  EXPECT_EQ(topology.nodes(1).name(), "pools/default/nodes/1000");
  EXPECT_THAT(topology.nodes(1).cpus(), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(topology.nodes(1).distances(), ElementsAre(20, 10));
  EXPECT_THAT(topology.nodes(1).zones(), ElementsAre("Normal"));
}

TEST(TopologyServiceTest, NamesTheKnownSubjectsWhenOneIsUnknown) {
  TestServer server({{.name = "pools/a"}, {.name = "pools/b"}});
  v1::GetTopologyRequest request;
  request.set_name("pools/c");
  v1::GetTopologyResponse response;

  const grpc::Status status =
      server.topology().GetTopology(Soon().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("pools/a, pools/b"));
  const Details details = DetailsOf(status);
  EXPECT_EQ(details.info.reason(), "NOT_FOUND");
  EXPECT_EQ(details.info.domain(), "memtuned.v1");
  EXPECT_EQ(details.info.metadata().at("known"), "pools/a, pools/b");
}

TEST(TopologyServiceTest, RefusesNamesThatAreNoSubject) {
  TestServer server;
  for (const char* name : {"", "default", "pools", "pools/", "pools/a/nodes/0",
                           "host/x", "\xc3\xa9", "pools//a"}) {
    v1::GetTopologyRequest request;
    request.set_name(name);
    v1::GetTopologyResponse response;

    const grpc::Status status =
        server.topology().GetTopology(Soon().get(), request, &response);

    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    const Details details = DetailsOf(status);
    ASSERT_EQ(details.bad_request.field_violations_size(), 1) << name;
    EXPECT_EQ(details.bad_request.field_violations(0).field(), "name");
    EXPECT_THAT(details.bad_request.field_violations(0).description(),
                HasSubstr("pools/NAME"));
  }
}

TEST(TopologyServiceTest, RefusesBadPageSizesAndForeignTokens) {
  TestServer server;
  for (const int size : {-1, 1001}) {
    v1::ListSubjectsRequest request;
    request.set_page_size(size);
    v1::ListSubjectsResponse response;
    const grpc::Status status =
        server.topology().ListSubjects(Soon().get(), request, &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << size;
    EXPECT_EQ(DetailsOf(status).bad_request.field_violations(0).field(),
              "page_size");
  }
  for (const char* token : {"x", "MTox", "!!!!", "OjowOjA"}) {
    v1::ListSubjectsRequest request;
    request.set_page_token(token);
    v1::ListSubjectsResponse response;
    const grpc::Status status =
        server.topology().ListSubjects(Soon().get(), request, &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << token;
    EXPECT_EQ(DetailsOf(status).bad_request.field_violations(0).field(),
              "page_token");
  }
}

}  // namespace
}  // namespace memtuned
