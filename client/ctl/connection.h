// SPDX-License-Identifier: Apache-2.0
// The channel to one daemon: stubs, a deadline on every call, and errors that
// say what is wrong with the connection. Knows no verbs.
#ifndef MEMTUNED_CLIENT_CTL_CONNECTION_H_
#define MEMTUNED_CLIENT_CTL_CONNECTION_H_

#include <grpc/health/v1/health.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <memtuned/v1/stats.grpc.pb.h>
#include <memtuned/v1/topology.grpc.pb.h>
#include <memtuned/v1/tuning.grpc.pb.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/rpc_error.h"
#include "client/ctl/target.h"
#include "client/ctl/tls_files.h"

namespace memtuned::ctl {

// How long calls may take: each of them, or all together.
struct CallLimit {
  double seconds = 10;
  bool together = false;
};

// Thread safety: caller's thread.
class Connection {
 public:
  // Looks at the socket first; the channel itself connects with the first
  // call.
  // Errors: those of CheckSocket(); kInvalidArgument when a TCP target comes
  // without one of the TLS files, or one cannot be read.
  static absl::StatusOr<std::unique_ptr<Connection>> Create(
      const Target& target, const TlsFiles& tls, const CallLimit& limit);

  // One unary call, as Call(&v1::StatsService::Stub::ListZones, *stats(), q).
  // Errors: the daemon's, with details; kUnavailable and kDeadlineExceeded
  // name the target. Blocks: until the deadline.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      Stub& stub, const Request& request) {
    grpc::ClientContext context;
    SetDeadline(context);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return Explain(FromGrpcStatus(status));
    return response;
  }

  // The error of a failed call in words that name the target.
  absl::Status Explain(const absl::Status& failure) const;

  void SetDeadline(grpc::ClientContext& context) const;

  const Target& target() const { return target_; }
  double timeout_seconds() const { return limit_.seconds; }
  v1::TopologyService::Stub& topology() { return *topology_; }
  v1::StatsService::Stub& stats() { return *stats_; }
  v1::TuningService::Stub& tuning() { return *tuning_; }
  grpc::health::v1::Health::Stub& health() { return *health_; }

 private:
  Connection(const Target& target, const std::string& server_name,
             const std::shared_ptr<grpc::ChannelCredentials>& credentials,
             const CallLimit& limit);

  const Target target_;
  const CallLimit limit_;
  const std::chrono::system_clock::time_point created_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::TopologyService::Stub> topology_;
  const std::unique_ptr<v1::StatsService::Stub> stats_;
  const std::unique_ptr<v1::TuningService::Stub> tuning_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_CONNECTION_H_
