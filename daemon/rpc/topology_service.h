// SPDX-License-Identifier: Apache-2.0
// memtuned.v1.TopologyService over a registry. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_TOPOLOGY_SERVICE_H_
#define MEMTUNED_DAEMON_RPC_TOPOLOGY_SERVICE_H_

#include <string>
#include <utility>

#include "daemon/rpc/gate.h"
#include "daemon/rpc/registry.h"
#include "memtuned/v1/topology.grpc.pb.h"

namespace memtuned {

// Thread safety: any thread.
class TopologyService final : public v1::TopologyService::Service {
 public:
  TopologyService(const Registry* registry, Gate* gate, std::string version)
      : registry_(registry), gate_(gate), version_(std::move(version)) {}

  grpc::Status ListSubjects(grpc::ServerContext* context,
                            const v1::ListSubjectsRequest* request,
                            v1::ListSubjectsResponse* response) override;
  grpc::Status GetTopology(grpc::ServerContext* context,
                           const v1::GetTopologyRequest* request,
                           v1::GetTopologyResponse* response) override;

 private:
  const Registry* const registry_;
  Gate* const gate_;
  const std::string version_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_TOPOLOGY_SERVICE_H_
