// SPDX-License-Identifier: Apache-2.0
// Signals are blocked in every thread and taken by the main thread alone,
// which also looks after the service manager's watchdog.
#include "daemon/run.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/keeper/keeper.h"
#include "daemon/log.h"
#include "daemon/rpc/grpc_log.h"
#include "daemon/service_manager.h"
#include "daemon/tls/certificate_reloader.h"

namespace memtuned {
namespace {

constexpr std::chrono::seconds kTendEvery(1);

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "memtuned: %s\n", std::string(status.message()).c_str());
}

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&signals, number);
  }
  return signals;
}

// From here on a signal ends the process at once.
void ExitOnNextSignal(const sigset_t& signals) {
  for (const int number : {SIGTERM, SIGINT}) {
    signal(number, [](int) { _exit(kExitFailed); });
  }
  signal(SIGHUP, SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// Prints the effective values as a file, and what the topology turns out to
// be as comments.
int Check(const Config& config) {
  const auto topology = ProbeConfigured(config);
  if (!topology.ok()) {
    Complain(topology.status());
    return kExitUsage;
  }
  const auto certificates = LoadCertificates(config);
  if (!certificates.ok()) {
    Complain(certificates.status());
    return kExitUsage;
  }
  std::printf("%s# topology %s: %zu nodes, %zu CPUs\n",
              ConfigText(config).c_str(), topology->description.c_str(),
              topology->nodes.size(), topology->OnlineCpus().size());
  for (const std::string& warning : topology->warnings) {
    std::printf("# %s\n", warning.c_str());
  }
  return kExitOk;
}

// The next signal. Feeds the watchdog and tends the daemon while it waits.
int WaitForSignal(const sigset_t& signals, Daemon& daemon,
                  ServiceManager& manager) {
  std::chrono::nanoseconds interval = kTendEvery;
  if (const auto wanted = manager.feeding_interval()) {
    interval = std::min(interval, *wanted);
  }
  const timespec timeout = absl::ToTimespec(absl::FromChrono(interval));
  while (true) {
    manager.Feed(daemon.Overdue());
    const int number = sigtimedwait(&signals, nullptr, &timeout);
    if (number > 0) return number;
    daemon.Tend();
  }
}

void Reload(const CommandLine& line, Daemon& daemon) {
  const auto next = LoadConfig(line);
  if (next.ok()) {
    daemon.Reload(*next);
  } else {
    LogEvent(LogLevel::kError, "reload-refused",
             {{"error", std::string(next.status().message())}});
  }
}

void HandleSignals(const CommandLine& line, const sigset_t& signals,
                   Daemon& daemon, ServiceManager& manager) {
  const std::string status =
      absl::StrCat("metrics on ", daemon.metrics_address());
  manager.Ready(status);
  while (true) {
    const int number = WaitForSignal(signals, daemon, manager);
    if (number != SIGHUP) {
      LogEvent(LogLevel::kInfo, "signal",
               {{"name", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
      manager.Stopping();
      return;
    }
    manager.Reloading();
    Reload(line, daemon);
    manager.Ready(status);
  }
}

}  // namespace

int RunDaemon(int argc, const char* const* argv, const PoolFactory& make_pool) {
  if (argc == 3 && std::strcmp(argv[1], kKeeperFlag) == 0) {
    return RunKeeper(argv[2]);
  }
  const CommandLine line = ParseCommandLine(argc, argv);
  if (line.exit_now) {
    std::fputs(line.exit_text.c_str(), line.exit_code == 0 ? stdout : stderr);
    return line.exit_code;
  }
  const auto config = LoadConfig(line);
  if (!config.ok()) {
    Complain(config.status());
    return kExitUsage;
  }
  const absl::Status logging =
      SetUpLogging(config->log_level, config->log_format);
  if (!logging.ok()) {
    Complain(logging);
    return kExitUsage;
  }
  RouteGrpcLog();
  if (line.check) return Check(*config);
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  ServiceManager manager;

  auto daemon = Daemon::Start(*config, make_pool);
  if (!daemon.ok()) {
    LogEvent(LogLevel::kError, "start-failed",
             {{"error", std::string(daemon.status().message())}});
    return kExitFailed;
  }
  HandleSignals(line, signals, **daemon, manager);
  ExitOnNextSignal(signals);
  (*daemon)->Stop();
  return kExitOk;
}

}  // namespace memtuned
