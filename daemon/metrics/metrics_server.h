// SPDX-License-Identifier: Apache-2.0
// Serves /metrics for Prometheus over HTTP. Floor 4; together with the other
// files of this folder and daemon.cc the only place that knows
// prometheus-cpp.
#ifndef MEMTUNED_DAEMON_METRICS_METRICS_SERVER_H_
#define MEMTUNED_DAEMON_METRICS_METRICS_SERVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/stats.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace memtuned {

class RpcMetrics;
class RpcObserver;

struct CertificateFigures {
  const char* kind;  // "server" or "ca"
  std::chrono::system_clock::time_point expiry;
  int64_t reload_failures;
};

struct MetricsOptions {
  // IPv4 address and port; port 0 picks a free one, see port().
  std::string listen = "127.0.0.1:9750";
  // Adds the per-CPU families: nodes x CPUs x 2 series.
  bool per_cpu = false;
  // Without it only 127.0.0.0/8 is accepted: anyone who reaches the port
  // reads everything, there is no TLS and no password here.
  bool allow_remote = false;
  // The certificates in use; empty without TLS. Called as `snapshots` is.
  std::function<std::vector<CertificateFigures>()> certificates;
};

// The HTTP server and what it shows: the snapshots, RPC counts and the build.
// A scrape reads cached snapshots only; it takes no lock of a subject.
//
// Thread safety: any thread; one caller destroys it.
class MetricsServer {
 public:
  // `snapshots` gives the latest one of each subject and is called from the
  // server's threads until Stop() returns.
  // Errors: kInvalidArgument (address), kPermissionDenied (address is not
  // loopback, privileged port), kUnavailable (address in use or not of this
  // machine).
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const MetricsOptions& options,
      std::function<std::vector<std::shared_ptr<const Snapshot>>()> snapshots);

  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // The port in use.
  int port() const { return port_; }
  // "127.0.0.1:9750", with the port in use.
  const std::string& address() const { return address_; }

  // Where the RPC layer reports finished calls; valid as long as the server.
  RpcObserver* rpc_observer();

  // Ends the threads of the server; a scrape under way is answered first.
  // May be called again.
  // Blocks: some milliseconds when no scrape is under way.
  void Stop();

 private:
  MetricsServer();

  std::shared_ptr<RpcMetrics> rpc_metrics_;
  // The exposer keeps weak references only.
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  int port_ = 0;
  std::string host_;
  std::string address_;
};

// What memtuned_build_info shows.
const char* BuildVersion();   // "0.1.0"
const char* BuildRevision();  // short commit, "unknown" outside a checkout

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_METRICS_METRICS_SERVER_H_
