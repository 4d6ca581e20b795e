// SPDX-License-Identifier: Apache-2.0
// The gRPC server: the services, health, reflection, limits, and a stop in
// order. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_SERVER_H_
#define MEMTUNED_DAEMON_RPC_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/access/unix_listener.h"
#include "daemon/rpc/gate.h"
#include "daemon/rpc/registry.h"
#include "daemon/rpc/rpc_observer.h"
#include "daemon/rpc/stats_service.h"
#include "daemon/rpc/topology_service.h"
#include "daemon/rpc/tuning_service.h"

namespace memtuned {

class CertificateReloader;

struct RpcServerOptions {
  // "unix:/run/memtuned/memtuned.sock".
  std::string listen;
  // Permissions of the socket, and its group unless that is -1. Whoever may
  // write to it may connect.
  int socket_mode = 0660;
  int64_t socket_gid = -1;
  // Who may do what; empty: DefaultGrants() of the socket's group.
  std::vector<RoleGrant> roles;
  int mutations_per_minute = 600;
  // Outlives the server. Without one nothing is audited.
  AuditLog* audit = nullptr;
  // "IP:PORT" for mutual TLS besides, or empty; port 0 picks a free one.
  std::string listen_tls;
  // What it is served with. Outlives the server.
  const CertificateReloader* certificates = nullptr;
  // A connection that has not proved who it is by then is closed.
  std::chrono::milliseconds handshake_timeout{10'000};
  // What ListSubjects answers as daemon_version.
  std::string version;
  // Threads of calls: every watcher holds one.
  int max_threads = StatsService::kMaxWatchers + 32;
};

// Thread safety: any thread; one caller starts and stops it.
class RpcServer {
 public:
  // Serves at once, on a socket nobody else listens on. `registry` outlives
  // the server; `observer` may be null and outlives it too.
  // Errors: kUnavailable when the address cannot be used.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const RpcServerOptions& options, const Registry* registry,
      RpcObserver* observer);

  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // "127.0.0.1:9751" with the port in use; empty without TLS.
  const std::string& tls_address() const { return tls_address_; }

  // For calls from now on; empty as in RpcServerOptions.
  void SetRoles(const std::vector<RoleGrant>& roles);
  void SetMutationsPerMinute(int per_minute) {
    gate_.SetMutationsPerMinute(per_minute);
  }

  // Health of one subject, as service "memtuned.v1/pools/default".
  void SetServing(const std::string& subject, bool serving)
      EXCLUDES(health_mutex_);

  // Health answers NOT_SERVING from here on, for the daemon and all subjects,
  // whatever is set later.
  void SetNotServing() EXCLUDES(health_mutex_);

  // Ends watches, refuses new calls, waits for running ones until `grace` is
  // over and then cancels them. May be called again.
  // Blocks: `grace` at most, when the handlers obey.
  void Stop(std::chrono::milliseconds grace);

 private:
  RpcServer(const RpcServerOptions& options, const Registry* registry,
            RpcObserver* observer);

  // Builds and starts with both addresses.
  absl::Status Listen(const RpcServerOptions& options,
                      grpc::ServerBuilder& builder);

  const Registry* const registry_;
  Gate gate_;
  TopologyService topology_;
  StatsService stats_;
  TuningService tuning_;
  std::string tls_address_;
  // gRPC asks it at each handshake.
  std::shared_ptr<grpc::ServerCredentials> tls_credentials_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<UnixListener> listener_;  // hands connections to server_
  Mutex health_mutex_;
  bool stopping_ GUARDED_BY(health_mutex_) = false;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_SERVER_H_
