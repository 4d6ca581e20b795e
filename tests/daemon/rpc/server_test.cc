// SPDX-License-Identifier: Apache-2.0
// Health, reflection, limits and counting of the server as a whole.
#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "daemon/rpc/call_observer.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

HealthCheckResponse::ServingStatus Health(
    const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  auto stub = grpc::health::v1::Health::NewStub(channel);
  HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  const grpc::Status status = stub->Check(Soon().get(), request, &response);
  return status.ok() ? response.status() : HealthCheckResponse::SERVICE_UNKNOWN;
}

// Calls `method` with raw bytes.
grpc::Status CallRaw(TestServer& server, const std::string& method,
                     const std::string& bytes) {
  grpc::GenericStub stub(server.channel());
  grpc::CompletionQueue queue;
  auto context = Soon();
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  auto call = stub.PrepareUnaryCall(context.get(), method, request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  return status;
}

TEST(RpcServerTest, SaysHealthForTheDaemonAndEachSubject) {
  TestServer server({{.name = "pools/a"}, {.name = "pools/b"}});
  server.server().SetServing("pools/a", true);
  server.server().SetServing("pools/b", false);

  EXPECT_EQ(Health(server.channel(), ""), HealthCheckResponse::SERVING);
  EXPECT_EQ(Health(server.channel(), "memtuned.v1/pools/a"),
            HealthCheckResponse::SERVING);
  EXPECT_EQ(Health(server.channel(), "memtuned.v1/pools/b"),
            HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health(server.channel(), "memtuned.v1/pools/c"),
            HealthCheckResponse::SERVICE_UNKNOWN);

  server.server().SetNotServing();

  EXPECT_EQ(Health(server.channel(), ""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health(server.channel(), "memtuned.v1/pools/a"),
            HealthCheckResponse::NOT_SERVING);
}

TEST(RpcServerTest, GivesItsSocketTheModeAskedFor) {
  TestServer server;
  struct stat info {};

  ASSERT_EQ(stat(server.listen().substr(5).c_str(), &info), 0);

  EXPECT_EQ(info.st_mode & 0777, 0660u);
}

TEST(RpcServerTest, CountsCallsByMethodAndCodeAndTheRestAsOther) {
  TestServer server;
  v1::GetTopologyRequest request;
  v1::GetTopologyResponse response;
  request.set_name("pools/default");
  server.topology().GetTopology(Soon().get(), request, &response);
  request.set_name("pools/none");
  server.topology().GetTopology(Soon().get(), request, &response);
  Health(server.channel(), "");
  for (int i = 0; i < 20; ++i) {
    const grpc::Status status =
        CallRaw(server, "/memtuned.v1.Random/" + std::to_string(i), "x");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }

  // A call is counted just before its status is sent.
  EXPECT_EQ(server.observer().Count("TopologyService/GetTopology", 0), 1);
  EXPECT_EQ(server.observer().Count("TopologyService/GetTopology", 5), 1);
  EXPECT_EQ(server.observer().Count("other", 12), 20);
  EXPECT_EQ(server.observer().Count("other", 0), 1);
  EXPECT_EQ(server.observer().total(), 23);
}

TEST(RpcServerTest, KnowsItsOwnMethodsOnly) {
  EXPECT_STREQ(ObservedMethod("/memtuned.v1.TuningService/Drain"),
               "TuningService/Drain");
  EXPECT_STREQ(ObservedMethod("/memtuned.v1.TuningService/Drain2"), "other");
  EXPECT_STREQ(ObservedMethod("TuningService/Drain"), "other");
  EXPECT_STREQ(ObservedMethod(""), "other");
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* name :
       {"TopologyService", "StatsService", "TuningService"}) {
    const auto* service =
        pool->FindServiceByName(std::string("memtuned.v1.") + name);
    ASSERT_NE(service, nullptr);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path =
          "/" + service->full_name() + "/" + service->method(i)->name();
      EXPECT_STRNE(ObservedMethod(path.c_str()), "other") << path;
    }
  }
}

TEST(RpcServerTest, SurvivesBytesThatAreNoMessage) {
  TestServer server;

  const grpc::Status garbage = CallRaw(
      server, "/memtuned.v1.TuningService/SetTunables", "\xff\xff\xff\xff");
  const grpc::Status huge =
      CallRaw(server, "/memtuned.v1.TuningService/SetTunables",
              std::string(5 << 20, 'x'));

  EXPECT_FALSE(garbage.ok());
  EXPECT_EQ(huge.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::ListSubjectsResponse response;
  EXPECT_TRUE(server.topology().ListSubjects(Soon().get(), {}, &response).ok());
}

TEST(RpcServerTest, RefusesAnAddressItCannotUse) {
  FakeSubject subject;
  Sampler sampler(&subject, {});
  Registry registry({{&subject, &sampler}});
  RpcServerOptions options;
  options.listen = "unix:/no/such/folder/memtuned.sock";

  const auto server = RpcServer::Start(options, &registry, nullptr);

  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(server.status().message()),
              HasSubstr("/no/such/folder/memtuned.sock"));
}

}  // namespace
}  // namespace memtuned
