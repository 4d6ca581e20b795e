// SPDX-License-Identifier: Apache-2.0
// The daemon as one object: pools, samplers, metrics and the API, started and
// stopped in order. Knows no signals and no command line. Floor 5.
#ifndef MEMTUNED_DAEMON_DAEMON_H_
#define MEMTUNED_DAEMON_DAEMON_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/topology.h"
#include "daemon/config.h"
#include "daemon/runtime_dir.h"
#include "daemon/sampler.h"
#include "daemon/subject.h"
#include "daemon/user_list.h"

namespace memtuned {

class AuditLog;
class CertificateReloader;
class FdStore;
class MetricsServer;
class Registry;
class RpcServer;

// Creates one pool, or goes on with the one that `store` has, with its attach
// socket open.
using PoolFactory = std::function<absl::StatusOr<std::unique_ptr<Subject>>(
    const PoolConfig& pool, const Topology& topology, FdStore* store)>;

// Thread safety: one thread starts, reloads and stops it.
class Daemon {
 public:
  // How long running calls may go on after Stop() began.
  static constexpr std::chrono::milliseconds kGrace{1500};

  // Claims the runtime folder, probes the topology, creates the pools or takes
  // them over, takes a first sample of each and serves.
  // Errors: those of the parts; nothing of a failed start is left behind but
  // pools that processes are attached to.
  // Blocks: while pools are created.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      const Config& config, const PoolFactory& make_pool);

  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Takes over what may change while running and logs the rest.
  void Reload(const Config& next);

  // Health says NOT_SERVING, watches end, calls run out, then metrics,
  // samplers and pools stop. May be called again.
  // Blocks: about kGrace at most, plus what the pools need.
  void Stop();

  // Looks after what outlives this daemon. To be called about once a second.
  void Tend();

  // How late the most belated sampler is; zero or less: all live.
  std::chrono::nanoseconds Overdue() const;

  // "127.0.0.1:9750" with the port in use, "off" without metrics.
  std::string metrics_address() const;
  // "0.0.0.0:9751" with the port in use, "off" without TLS.
  std::string tls_address() const;

 private:
  explicit Daemon(Config config);

  absl::Status CreatePools(const PoolFactory& make_pool);
  absl::Status Serve();
  void SetUsers(const std::string& pool, const PoolUsers& users);
  void ApplyTunables(const std::string& pool,
                     const std::vector<TunableAssignment>& assignments);

  // In the order of creation; destroyed backwards.
  Config config_;
  std::unique_ptr<RuntimeDir> runtime_dir_;
  std::unique_ptr<AuditLog> audit_;
  Topology topology_;
  std::unique_ptr<FdStore> fd_store_;
  std::vector<std::unique_ptr<Subject>> subjects_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  // one for each subject
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<CertificateReloader> certificates_;  // null without TLS
  std::unique_ptr<MetricsServer> metrics_;
  std::unique_ptr<RpcServer> rpc_;
};

// Probes the topology a configuration names. Before other threads start: hwloc
// reads the environment.
absl::StatusOr<Topology> ProbeConfigured(const Config& config);

// Reads and checks the certificates a configuration names; null without TLS.
absl::StatusOr<std::unique_ptr<CertificateReloader>> LoadCertificates(
    const Config& config);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_DAEMON_H_
