// SPDX-License-Identifier: Apache-2.0
// Builds the server with bounded threads and message sizes.
#include "daemon/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/rpc/call_observer.h"
#include "daemon/rpc/tls_credentials.h"

namespace memtuned {
namespace {

constexpr int kMaxRequestBytes = 4 << 20;

std::string HealthName(const std::string& subject) {
  return absl::StrCat("memtuned.v1/", subject);
}

// Holds the library until the process ends. After a large write, its shutdown
// waits up to 10 s for a background poller; a daemon has not that time.
void KeepLibrary() {
  static const bool kept = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(kept);
}

absl::Status SetSocketMode(const std::string& listen, int mode) {
  if (!absl::StartsWith(listen, "unix:/")) return absl::OkStatus();
  const std::string path = listen.substr(5);
  if (chmod(path.c_str(), static_cast<mode_t>(mode)) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("cannot set the mode of ", path,
                                             ": ", std::strerror(errno)));
}

}  // namespace

RpcServer::RpcServer(const Registry* registry, RpcObserver* observer,
                     const std::string& version)
    : registry_(registry),
      topology_(registry, version),
      stats_(registry, observer),
      tuning_(registry) {}

RpcServer::~RpcServer() { Stop(std::chrono::milliseconds(0)); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const RpcServerOptions& options, const Registry* registry,
    RpcObserver* observer) {
  std::unique_ptr<RpcServer> server(
      new RpcServer(registry, observer, options.version));
  KeepLibrary();
  // Both are process-wide and may be set again.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("memtuned");
  quota.SetMaxThreads(options.max_threads);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(&server->topology_);
  builder.RegisterService(&server->stats_);
  builder.RegisterService(&server->tuning_);
  if (observer != nullptr) {
    std::vector<
        std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
        interceptors;
    interceptors.push_back(MakeCallObserver(observer));
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
  }
  const absl::Status listening = server->Listen(options, builder);
  if (!listening.ok()) return listening;
  for (const ServedSubject& served : registry->subjects()) {
    server->SetServing(served.subject->name(),
                       served.sampler->Latest() != nullptr);
  }
  return server;
}

absl::Status RpcServer::Listen(const RpcServerOptions& options,
                               grpc::ServerBuilder& builder) {
  int socket = 0;  // stays 0 when that address cannot be had
  int tls_port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(),
                           &socket);
  if (!options.listen_tls.empty()) {
    tls_credentials_ = MakeTlsCredentials(options.certificates);
    builder.AddListeningPort(options.listen_tls, tls_credentials_, &tls_port);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ",
                     socket == 0 ? options.listen : options.listen_tls));
  }
  if (tls_port != 0) {
    tls_address_ = absl::StrCat(
        options.listen_tls.substr(0, options.listen_tls.rfind(':')), ":",
        tls_port);
  }
  return SetSocketMode(options.listen, options.socket_mode);
}

void RpcServer::SetServing(const std::string& subject, bool serving) {
  MutexLock lock(health_mutex_);
  if (stopping_) return;
  server_->GetHealthCheckService()->SetServingStatus(HealthName(subject),
                                                     serving);
}

void RpcServer::SetNotServing() {
  MutexLock lock(health_mutex_);
  if (stopping_) return;
  stopping_ = true;
  server_->GetHealthCheckService()->SetServingStatus(false);
}

void RpcServer::Stop(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;
  SetNotServing();
  for (const ServedSubject& served : registry_->subjects()) {
    served.sampler->EndWatches();
  }
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_.reset();
}

}  // namespace memtuned
