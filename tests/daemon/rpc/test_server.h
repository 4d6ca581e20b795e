// SPDX-License-Identifier: Apache-2.0
// A real server over fake subjects on a socket in a temporary folder, with
// clients, and readers of error details.
#ifndef MEMTUNED_TESTS_DAEMON_RPC_TEST_SERVER_H_
#define MEMTUNED_TESTS_DAEMON_RPC_TEST_SERVER_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "daemon/rpc/server.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/daemon/rpc/fake_subject.h"

namespace memtuned {

// Counts what it is told.
class CountingObserver : public RpcObserver {
 public:
  void Observe(const char* method, int code, double seconds) override;
  void WatchFellBehind() override;
  void CallDenied() override;
  int Count(const std::string& method, int code) const;
  int total() const;
  int fell_behind() const;
  int denied() const;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int>, int> counts_ GUARDED_BY(mutex_);
  int fell_behind_ GUARDED_BY(mutex_) = 0;
  int denied_ GUARDED_BY(mutex_) = 0;
};

class TestServer {
 public:
  explicit TestServer(std::vector<FakeOptions> subjects = {FakeOptions{}},
                      SamplerOptions sampling = {},
                      RpcServerOptions options = {});
  // Also listens on a port of 127.0.0.1, where every certificate is admin.
  TestServer(std::vector<FakeOptions> subjects, SamplerOptions sampling,
             const CertificateReloader* certificates);
  ~TestServer();

  FakeSubject& subject(size_t i = 0) { return *subjects_[i]; }
  Sampler& sampler(size_t i = 0) { return *samplers_[i]; }
  RpcServer& server() { return *server_; }
  CountingObserver& observer() { return observer_; }
  // The lines of the audit log so far.
  std::vector<std::string> audit() const;
  const std::string& listen() const { return listen_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }
  v1::TopologyService::Stub& topology() { return *topology_; }
  v1::StatsService::Stub& stats() { return *stats_; }
  v1::TuningService::Stub& tuning() { return *tuning_; }

 private:
  std::string folder_, listen_;
  std::vector<std::unique_ptr<FakeSubject>> subjects_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  CountingObserver observer_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TopologyService::Stub> topology_;
  std::unique_ptr<v1::StatsService::Stub> stats_;
  std::unique_ptr<v1::TuningService::Stub> tuning_;
};

// A context that ends in 20 s.
std::unique_ptr<grpc::ClientContext> Soon();

// The details of an error, decoded.
struct Details {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  google::rpc::RetryInfo retry;
};
Details DetailsOf(const grpc::Status& status);

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_RPC_TEST_SERVER_H_
