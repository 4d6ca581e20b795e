// SPDX-License-Identifier: Apache-2.0
// Builds the server with bounded threads and message sizes.
#include "daemon/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/call_observer.h"
#include "daemon/rpc/tls_credentials.h"

namespace memtuned {
namespace {

constexpr int kMaxRequestBytes = 4 << 20;
// Of a connection; calls beyond wait in the client.
constexpr int kMaxStreams = 100;
// How often a client may ping. One that has no call open may, too: long pauses
// between calls are what operators' connections have.
constexpr int kMinPingMillis = 20'000;
// How soon a connection whose other end is gone is noticed: watches hold a
// thread.
constexpr int kKeepaliveMillis = 60'000;
constexpr int kKeepaliveTimeoutMillis = 20'000;

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

void LimitConnections(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             kKeepaliveTimeoutMillis);
}

}  // namespace

RpcServer::RpcServer(const RpcServerOptions& options, const Registry* registry,
                     RpcObserver* observer)
    : registry_(registry),
      gate_(options.audit, observer, options.mutations_per_minute),
      topology_(registry, &gate_, options.version),
      stats_(registry, &gate_, observer),
      tuning_(registry, &gate_) {}

RpcServer::~RpcServer() { Stop(std::chrono::milliseconds(0)); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const RpcServerOptions& options, const Registry* registry,
    RpcObserver* observer) {
  std::unique_ptr<RpcServer> server(new RpcServer(options, registry, observer));
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
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(options.handshake_timeout.count()));
  LimitConnections(builder);
  builder.RegisterService(&server->topology_);
  builder.RegisterService(&server->stats_);
  builder.RegisterService(&server->tuning_);
  std::vector<
      std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
      interceptors;
  if (observer != nullptr) interceptors.push_back(MakeCallObserver(observer));
  interceptors.push_back(MakeLibraryGate(&server->gate_));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
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
  int tls_port = 0;
  if (!options.listen_tls.empty()) {
    tls_credentials_ = MakeTlsCredentials(options.certificates);
    builder.AddListeningPort(options.listen_tls, tls_credentials_, &tls_port);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen_tls));
  }
  if (tls_port != 0) {
    tls_address_ = absl::StrCat(
        options.listen_tls.substr(0, options.listen_tls.rfind(':')), ":",
        tls_port);
  }
  auto listener =
      UnixListener::Start({.path = options.listen.substr(5),
                           .mode = options.socket_mode,
                           .gid = options.socket_gid},
                          [server = server_.get()](int fd) {
                            grpc::AddInsecureChannelFromFd(server, fd);
                          });
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  SetRoles(options.roles);
  return absl::OkStatus();
}

void RpcServer::SetRoles(const std::vector<RoleGrant>& roles) {
  gate_.SetGrants(roles.empty() ? DefaultGrants(listener_->gid()) : roles);
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
  listener_.reset();
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_.reset();
}

}  // namespace memtuned
