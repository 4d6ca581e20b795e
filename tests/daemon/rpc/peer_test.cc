// SPDX-License-Identifier: Apache-2.0
// A Unix caller is known by a descriptor's number, and numbers come back:
// what gRPC does with descriptors is held here to what peer.h counts on.
#include "daemon/rpc/peer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/base/mutex.h"
#include "daemon/access/unix_listener.h"
#include "memtuned/v1/topology.grpc.pb.h"
#include "tests/daemon/rpc/other_user.h"
#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

constexpr uid_t kEarly = 4201, kLate = 4202;

template <class Condition>
bool Eventually(const Condition& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Its first call waits, and asks who makes it only then; the others answer
// who makes them.
class SlowService : public v1::TopologyService::Service {
 public:
  grpc::Status ListSubjects(grpc::ServerContext* context,
                            const v1::ListSubjectsRequest*,
                            v1::ListSubjectsResponse* response) override {
    if (!entered.exchange(true)) {
      while (!go_on) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      first_cancelled = context->IsCancelled();
      const auto caller = CallerOf(*context);
      first_caller = caller.ok() ? caller->uid : 0;
    }
    const auto caller = CallerOf(*context);
    response->set_daemon_version(caller.ok() ? caller->Text() : "unknown");
    return grpc::Status::OK;
  }

  std::atomic<bool> entered{false}, go_on{false}, first_cancelled{false};
  std::atomic<uid_t> first_caller{0};
};

class PeerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "becomes other users: needs root";
    char folder[] = "/tmp/memtuned-peer-XXXXXX";
    folder_ = mkdtemp(folder);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    auto listener = UnixListener::Start(
        {.path = folder_ + "/peer.sock", .mode = 0666}, [this](int fd) {
          accepted_ = fd;
          grpc::AddInsecureChannelFromFd(server_.get(), fd);
        });
    ASSERT_TRUE(listener.ok());
    listener_ = *std::move(listener);
  }

  ~PeerTest() override {
    listener_.reset();
    if (server_ != nullptr) server_->Shutdown();
    std::filesystem::remove_all(folder_);
  }

  std::string listen() const { return "unix:" + folder_ + "/peer.sock"; }

  std::string Caller(uid_t uid) {
    v1::ListSubjectsResponse response;
    const auto channel = ChannelAs(listen(), {uid, 100});
    const grpc::Status status =
        v1::TopologyService::NewStub(channel)->ListSubjects(Soon().get(), {},
                                                            &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.daemon_version();
  }

  std::string folder_;
  SlowService service_;
  std::atomic<int> accepted_{-1};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<UnixListener> listener_;
};

TEST_F(PeerTest, ACallOfAClosedConnectionIsNeverTheNextConnections) {
  const int client = ConnectAs(listen(), {kEarly, 100});
  fcntl(client, F_SETFL, O_NONBLOCK);
  std::thread early([&] {
    v1::ListSubjectsResponse response;
    const auto channel = grpc::CreateInsecureChannelFromFd("early", client);
    const grpc::Status status =
        v1::TopologyService::NewStub(channel)->ListSubjects(Soon().get(), {},
                                                            &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  });
  ASSERT_TRUE(Eventually([&] { return service_.entered.load(); }));
  const int number = accepted_;
  shutdown(client, SHUT_RDWR);
  early.join();

  // Many connections of somebody else, each of which would get the number if
  // it were free.
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Caller(kLate), "uid:4202");
    EXPECT_NE(accepted_, number);
  }
  service_.go_on = true;
  ASSERT_TRUE(Eventually([&] { return service_.first_caller != 0; }));

  EXPECT_EQ(service_.first_caller, kEarly);
  EXPECT_TRUE(service_.first_cancelled);
  // Numbers do come back once the last call is gone: this test could fail.
  EXPECT_TRUE(Eventually([&] {
    Caller(kLate);
    return accepted_ == number;
  }));
}

TEST_F(PeerTest, ManyUsersAtOnceAreToldApart) {
  service_.entered = true;
  std::vector<std::thread> users;
  for (uid_t uid = 5000; uid < 5008; ++uid) {
    users.emplace_back([this, uid] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(Caller(uid), "uid:" + std::to_string(uid));
      }
    });
  }
  for (std::thread& user : users) user.join();
}

}  // namespace
}  // namespace memtuned
