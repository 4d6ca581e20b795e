// SPDX-License-Identifier: Apache-2.0
// prometheus-cpp's Exposer, its exceptions turned into Status, its slow
// shutdown hurried up.
#include "daemon/metrics/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/metrics/certificate_metrics.h"
#include "daemon/metrics/listen_address.h"
#include "daemon/metrics/rpc_metrics.h"
#include "daemon/metrics/snapshot_collector.h"

namespace memtuned {
namespace {

// The one metric of the binary itself.
class BuildInfo : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::ClientMetric metric;
    metric.label = {{"version", BuildVersion()}, {"revision", BuildRevision()}};
    metric.gauge.value = 1;
    return {{"memtuned_build_info",
             "1, labelled with what was built.",
             prometheus::MetricType::Gauge,
             {std::move(metric)}}};
  }
};

double UnixNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

sockaddr_in SocketAddress(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// civetweb only says that it could not listen; a bind of our own says why.
absl::Status WhyNotListening(const ListenAddress& listen) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "socket for metrics");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in address = SocketAddress(listen.host, listen.port);
  int error = 0;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      ::listen(fd, 1) != 0) {
    error = errno;
  }
  close(fd);
  const std::string text =
      absl::StrCat("cannot listen on ", listen.Text(), " for metrics: ",
                   error != 0 ? strerror(error) : "the HTTP server failed");
  if (error == EACCES) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

// Makes one connection and closes it.
void Knock(const std::string& host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const sockaddr_in address =
      SocketAddress(host == "0.0.0.0" ? "127.0.0.1" : host, port);
  // Nonblocking: whether it succeeds is of no interest.
  const int ignored =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  static_cast<void>(ignored);
  close(fd);
}

}  // namespace

const char* BuildVersion() { return MEMTUNED_VERSION; }
const char* BuildRevision() { return MEMTUNED_REVISION; }

MetricsServer::MetricsServer() = default;
MetricsServer::~MetricsServer() { Stop(); }

RpcObserver* MetricsServer::rpc_observer() { return rpc_metrics_.get(); }

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsOptions& options,
    std::function<std::vector<std::shared_ptr<const Snapshot>>()> snapshots) {
  const auto listen = ParseListenAddress(options.listen);
  if (!listen.ok()) return listen.status();
  if (!listen->loopback && !options.allow_remote) {
    return absl::PermissionDeniedError(absl::StrCat(
        "metrics listen address is ", listen->Text(),
        "; allowed 127.0.0.0/8 unless remote scrapes are switched on: the "
        "metrics have neither TLS nor a password"));
  }

  std::unique_ptr<MetricsServer> server(new MetricsServer());
  server->rpc_metrics_ = std::make_shared<RpcMetrics>();
  server->collectables_ = {std::make_shared<SnapshotCollector>(
                               std::move(snapshots), options.per_cpu, UnixNow),
                           server->rpc_metrics_, std::make_shared<BuildInfo>()};
  if (options.certificates) {
    server->collectables_.push_back(
        std::make_shared<CertificateMetrics>(options.certificates));
  }
  server->host_ = listen->host;
  try {
    server->exposer_ =
        std::make_unique<prometheus::Exposer>(std::vector<std::string>{
            "listening_ports", listen->Text(), "num_threads", "2",
            "request_timeout_ms", "10000"});
    for (const auto& collectable : server->collectables_) {
      server->exposer_->RegisterCollectable(collectable);
    }
    server->port_ = server->exposer_->GetListeningPorts().at(0);
  } catch (const std::exception&) {
    return WhyNotListening(*listen);
  }
  server->address_ = absl::StrCat(server->host_, ":", server->port_);
  return server;
}

void MetricsServer::Stop() {
  if (exposer_ == nullptr) return;
  // civetweb's accepting thread looks at its stop flag only when a connection
  // comes or 2 s have passed: knock until it has gone.
  std::atomic<bool> stopped{false};
  std::thread stopper([this, &stopped] {
    exposer_.reset();
    stopped = true;
  });
  while (!stopped) {
    Knock(host_, port_);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stopper.join();
}

}  // namespace memtuned
