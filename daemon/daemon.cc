// SPDX-License-Identifier: Apache-2.0
// Builds the parts bottom up and takes them down top first.
#include "daemon/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/access/audit_log.h"
#include "daemon/host/topology_probe.h"
#include "daemon/keeper/fd_store.h"
#include "daemon/log.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/reload.h"
#include "daemon/rpc/server.h"
#include "daemon/tls/certificate_reloader.h"

namespace memtuned {
namespace {

constexpr std::chrono::seconds kFirstSample(5);

std::string SubjectNames(const std::vector<std::unique_ptr<Subject>>& list) {
  return absl::StrJoin(list, ",", [](std::string* out, const auto& subject) {
    out->append(subject->name());
  });
}

void LogTopology(const Topology& topology) {
  LogEvent(LogLevel::kInfo, "topology",
           {{"source", topology.description},
            {"nodes", absl::StrCat(topology.nodes.size())},
            {"cpus", absl::StrCat(topology.OnlineCpus().size())}});
  for (const std::string& warning : topology.warnings) {
    LogEvent(LogLevel::kWarning, "topology-odd", {{"warning", warning}});
  }
}

// What the metrics show; nothing without TLS.
std::function<std::vector<CertificateFigures>()> CertificateFiguresOf(
    const CertificateReloader* certificates) {
  if (certificates == nullptr) return nullptr;
  return [certificates]() -> std::vector<CertificateFigures> {
    const CertificateReloader::State state = certificates->state();
    return {{"server", state.server_expiry, state.server_failures},
            {"ca", state.ca_expiry, state.ca_failures}};
  };
}

// As it works: an empty list keeps nobody out.
std::string AttachText(const PoolUsers& users) {
  return users.attach.empty() ? UserListText({.everyone = true})
                              : UserListText(users.attach);
}

void LogConfig(const Config& config) {
  LogFields fields;
  for (const ConfigSetting& setting : ConfigSettings()) {
    fields.emplace_back(setting.key, setting.get(config));
  }
  LogEvent(LogLevel::kInfo, "config", fields);
  if (!config.roles.empty()) {
    LogEvent(LogLevel::kInfo, "config-roles", {{"roles", RolesText(config)}});
  }
  for (const PoolConfig& pool : config.pools) {
    fields = {{"name", pool.name},
              {"size", PoolSizeText(pool)},
              {"populate", pool.populate},
              {"socket", pool.socket_path},
              {"attach", AttachText(pool.users)},
              {"observe", UserListText(pool.users.observe)}};
    for (const TunableAssignment& tunable : pool.tunables) {
      fields.emplace_back(tunable.tunable, ValueText(tunable.value));
    }
    LogEvent(LogLevel::kInfo, "config-pool", fields);
  }
}

// As in the audit lines of calls.
std::string ValuesText(const ChangeResult& result,
                       TunableValue ValueChange::*which) {
  return absl::StrJoin(
      result.values, ", ", [which](std::string* out, const ValueChange& value) {
        absl::StrAppend(out, value.tunable, "=", ValueText(value.*which));
      });
}

}  // namespace

absl::StatusOr<Topology> ProbeConfigured(const Config& config) {
  ProbeOptions options;
  options.proc_root = config.proc_root;
  options.sys_root = config.sys_root;
  return ProbeTopology(config.topology, options);
}

absl::StatusOr<std::unique_ptr<CertificateReloader>> LoadCertificates(
    const Config& config) {
  if (config.listen_tls == "off") return nullptr;
  return CertificateReloader::Create(
      {config.tls_certificate, config.tls_key, config.tls_client_ca});
}

Daemon::Daemon(Config config) : config_(std::move(config)) {}

Daemon::~Daemon() { Stop(); }

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    const Config& config, const PoolFactory& make_pool) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  LogConfig(config);
  auto topology = ProbeConfigured(config);
  if (!topology.ok()) return topology.status();
  daemon->topology_ = *std::move(topology);
  LogTopology(daemon->topology_);
  auto certificates = LoadCertificates(config);
  if (!certificates.ok()) return certificates.status();
  daemon->certificates_ = *std::move(certificates);
  auto runtime_dir =
      RuntimeDir::Claim(config.runtime_dir, config.listen.substr(5));
  if (!runtime_dir.ok()) return runtime_dir.status();
  daemon->runtime_dir_ = *std::move(runtime_dir);
  auto audit = AuditLog::Open(config.audit_log);
  if (!audit.ok()) return audit.status();
  daemon->audit_ = *std::move(audit);
  daemon->fd_store_ = std::make_unique<FdStore>(
      FdStoreOptions{.keeper_path = config.runtime_dir + "/keeper.sock"});
  const absl::Status created = daemon->CreatePools(make_pool);
  if (!created.ok()) return created;
  daemon->fd_store_->LeaveRest("no pool of that name is configured");
  const absl::Status serving = daemon->Serve();
  if (!serving.ok()) return serving;
  LogEvent(LogLevel::kInfo, "ready",
           {{"listen", config.listen},
            {"listen-tls", daemon->tls_address()},
            {"metrics", daemon->metrics_address()},
            {"subjects", SubjectNames(daemon->subjects_)},
            {"version", BuildVersion()},
            {"pid", absl::StrCat(getpid())}});
  return daemon;
}

absl::Status Daemon::CreatePools(const PoolFactory& make_pool) {
  std::vector<ServedSubject> served;
  const SamplerOptions options{.interval = config_.sample_interval,
                               .always_full = config_.metrics_per_cpu};
  for (const PoolConfig& pool : config_.pools) {
    auto subject = make_pool(pool, topology_, fd_store_.get());
    if (!subject.ok()) {
      return absl::Status(
          subject.status().code(),
          absl::StrCat("pool ", pool.name, ": ",
                       std::string(subject.status().message())));
    }
    subjects_.push_back(*std::move(subject));
    Subject* const raw = subjects_.back().get();
    // The server starts before the sampler and stops calling back first.
    samplers_.push_back(std::make_unique<Sampler>(
        raw, options, [this, name = raw->name()](bool healthy) {
          rpc_->SetServing(name, healthy);
        }));
    served.push_back({raw, samplers_.back().get()});
  }
  registry_ = std::make_unique<Registry>(std::move(served));
  return absl::OkStatus();
}

absl::Status Daemon::Serve() {
  if (config_.metrics_listen != "off") {
    auto metrics = MetricsServer::Start(
        {.listen = config_.metrics_listen,
         .per_cpu = config_.metrics_per_cpu,
         .allow_remote = config_.metrics_allow_remote,
         .certificates = CertificateFiguresOf(certificates_.get())},
        [this] {
          std::vector<std::shared_ptr<const Snapshot>> snapshots;
          for (const auto& sampler : samplers_) {
            if (auto latest = sampler->Latest()) {
              snapshots.push_back(std::move(latest));
            }
          }
          return snapshots;
        });
    if (!metrics.ok()) return metrics.status();
    metrics_ = *std::move(metrics);
    if (config_.metrics_allow_remote) {
      LogEvent(LogLevel::kWarning, "metrics-remote",
               {{"address", metrics_->address()},
                {"note", "anyone who reaches it reads everything"}});
    }
  }
  RpcServerOptions options;
  options.listen = config_.listen;
  if (certificates_ != nullptr) {
    certificates_->Start();
    options.listen_tls = config_.listen_tls;
    options.certificates = certificates_.get();
  }
  options.socket_mode = config_.listen_mode;
  options.socket_gid = config_.listen_gid;
  options.roles = config_.roles;
  options.mutations_per_minute = config_.mutations_per_minute;
  options.audit = audit_.get();
  options.version = BuildVersion();
  auto rpc = RpcServer::Start(options, registry_.get(),
                              metrics_ ? metrics_->rpc_observer() : nullptr);
  if (!rpc.ok()) return rpc.status();
  rpc_ = *std::move(rpc);
  for (const auto& sampler : samplers_) sampler->Start();
  const SteadyTime deadline = std::chrono::steady_clock::now() + kFirstSample;
  for (const auto& sampler : samplers_) sampler->Refresh(deadline);
  return absl::OkStatus();
}

void Daemon::Reload(const Config& next) {
  const ReloadPlan plan = PlanReload(config_, next);
  config_ = AfterReload(config_, next, plan);
  // The level was checked when it was read.
  static_cast<void>(SetLogLevel(config_.log_level));
  for (const auto& sampler : samplers_) {
    sampler->SetInterval(config_.sample_interval);
  }
  if (certificates_ != nullptr) certificates_->LookNow();
  rpc_->SetRoles(config_.roles);
  rpc_->SetMutationsPerMinute(config_.mutations_per_minute);
  audit_->Reopen();
  for (const auto& [pool, assignments] : plan.tunables) {
    ApplyTunables(pool, assignments);
  }
  for (const auto& [pool, users] : plan.users) SetUsers(pool, users);
  LogEvent(plan.needs_restart.empty() ? LogLevel::kInfo : LogLevel::kWarning,
           "reloaded",
           {{"changed", absl::StrJoin(plan.settings, ",")},
            {"needs-restart", absl::StrJoin(plan.needs_restart, ",")}});
}

void Daemon::SetUsers(const std::string& pool, const PoolUsers& users) {
  const std::string name = absl::StrCat("pools/", pool);
  for (const auto& subject : subjects_) {
    if (subject->name() != name) continue;
    subject->SetUsers(users);
    LogEvent(LogLevel::kInfo, "attach-list-changed",
             {{"pool", pool},
              {"attach", AttachText(users)},
              {"observe", UserListText(users.observe)}});
  }
}

void Daemon::ApplyTunables(const std::string& pool,
                           const std::vector<TunableAssignment>& assignments) {
  const std::string name = absl::StrCat("pools/", pool);
  for (size_t i = 0; i < subjects_.size(); ++i) {
    if (subjects_[i]->name() != name) continue;
    ChangeContext context;
    context.caller = "config";
    context.reason = "configuration reloaded";
    const auto result = subjects_[i]->Apply(assignments, context);
    LogFields fields = {{"caller", context.caller},
                        {"method", "reload"},
                        {"subject", name},
                        {"decision", result.ok() ? "applied" : "refused"},
                        {"reason", context.reason}};
    if (result.ok()) {
      fields.emplace_back("generation", absl::StrCat(result->generation));
      fields.emplace_back("before", ValuesText(*result, &ValueChange::before));
      fields.emplace_back("after", ValuesText(*result, &ValueChange::after));
    } else {
      fields.emplace_back("error", result.status().ToString());
      LogEvent(LogLevel::kError, "reload-failed", fields);
    }
    audit_->Write(fields);
  }
}

void Daemon::Stop() {
  if (rpc_ != nullptr) {
    LogEvent(LogLevel::kInfo, "stopping", {{"listen", config_.listen}});
    rpc_->Stop(kGrace);
  }
  if (metrics_ != nullptr) metrics_->Stop();
  for (const auto& sampler : samplers_) sampler->Stop();
  const bool was_serving = rpc_ != nullptr;
  rpc_.reset();
  metrics_.reset();
  certificates_.reset();
  registry_.reset();
  samplers_.clear();
  subjects_.clear();
  fd_store_.reset();
  runtime_dir_.reset();
  if (was_serving) LogEvent(LogLevel::kInfo, "stopped", {});
}

void Daemon::Tend() { fd_store_->Tend(); }

std::chrono::nanoseconds Daemon::Overdue() const {
  auto most = std::chrono::nanoseconds::min();
  for (const auto& sampler : samplers_) {
    most = std::max(most, sampler->Overdue());
  }
  return most;
}

std::string Daemon::metrics_address() const {
  return metrics_ ? metrics_->address() : "off";
}

std::string Daemon::tls_address() const {
  return certificates_ ? rpc_->tls_address() : "off";
}

}  // namespace memtuned
