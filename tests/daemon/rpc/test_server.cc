// SPDX-License-Identifier: Apache-2.0
// Starts and stops in the order the daemon does.
#include "tests/daemon/rpc/test_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace memtuned {

void CountingObserver::Observe(const char* method, int code, double seconds) {
  EXPECT_GE(seconds, 0);
  MutexLock lock(mutex_);
  ++counts_[{method, code}];
}

void CountingObserver::WatchFellBehind() {
  MutexLock lock(mutex_);
  ++fell_behind_;
}

void CountingObserver::CallDenied() {
  MutexLock lock(mutex_);
  ++denied_;
}

int CountingObserver::denied() const {
  MutexLock lock(mutex_);
  return denied_;
}

int CountingObserver::Count(const std::string& method, int code) const {
  MutexLock lock(mutex_);
  const auto found = counts_.find({method, code});
  return found == counts_.end() ? 0 : found->second;
}

int CountingObserver::total() const {
  MutexLock lock(mutex_);
  int sum = 0;
  for (const auto& [key, count] : counts_) sum += count;
  return sum;
}

int CountingObserver::fell_behind() const {
  MutexLock lock(mutex_);
  return fell_behind_;
}

namespace {

RpcServerOptions WithTls(const CertificateReloader* certificates) {
  RpcServerOptions options;
  options.listen_tls = "127.0.0.1:0";
  options.certificates = certificates;
  options.roles = {{.role = Role::kAdmin, .identities = {"*"}}};
  return options;
}

}  // namespace

TestServer::TestServer(std::vector<FakeOptions> subjects,
                       SamplerOptions sampling,
                       const CertificateReloader* certificates)
    : TestServer(std::move(subjects), sampling, WithTls(certificates)) {}

TestServer::TestServer(std::vector<FakeOptions> subjects,
                       SamplerOptions sampling, RpcServerOptions options) {
  char folder[] = "/tmp/memtuned-rpc-XXXXXX";
  folder_ = mkdtemp(folder);
  chmod(folder, 0755);
  listen_ = "unix:" + folder_ + "/memtuned.sock";
  std::vector<ServedSubject> served;
  for (FakeOptions& options : subjects) {
    subjects_.push_back(std::make_unique<FakeSubject>(std::move(options)));
    samplers_.push_back(
        std::make_unique<Sampler>(subjects_.back().get(), sampling));
    samplers_.back()->Start();
    served.push_back({subjects_.back().get(), samplers_.back().get()});
  }
  registry_ = std::make_unique<Registry>(std::move(served));
  audit_ = *AuditLog::Open(folder_ + "/audit.log");
  options.audit = audit_.get();
  options.listen = listen_;
  options.version = "1.2.3";
  auto server = RpcServer::Start(options, registry_.get(), &observer_);
  EXPECT_TRUE(server.ok()) << server.status();
  if (!server.ok()) abort();
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel(listen_, grpc::InsecureChannelCredentials());
  topology_ = v1::TopologyService::NewStub(channel_);
  stats_ = v1::StatsService::NewStub(channel_);
  tuning_ = v1::TuningService::NewStub(channel_);
}

TestServer::~TestServer() {
  server_->Stop(std::chrono::milliseconds(500));
  for (auto& sampler : samplers_) sampler->Stop();
  std::filesystem::remove_all(folder_);
}

std::vector<std::string> TestServer::audit() const {
  std::vector<std::string> lines;
  std::ifstream in(folder_ + "/audit.log");
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::unique_ptr<grpc::ClientContext> Soon() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(20));
  return context;
}

Details DetailsOf(const grpc::Status& status) {
  Details details;
  EXPECT_TRUE(details.status.ParseFromString(status.error_details()));
  EXPECT_EQ(details.status.code(), static_cast<int>(status.error_code()));
  EXPECT_EQ(details.status.message(), status.error_message());
  for (const auto& any : details.status.details()) {
    if (any.Is<google::rpc::ErrorInfo>()) any.UnpackTo(&details.info);
    if (any.Is<google::rpc::BadRequest>()) any.UnpackTo(&details.bad_request);
    if (any.Is<google::rpc::RetryInfo>()) any.UnpackTo(&details.retry);
  }
  return details;
}

}  // namespace memtuned
