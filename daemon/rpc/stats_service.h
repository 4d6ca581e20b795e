// SPDX-License-Identifier: Apache-2.0
// memtuned.v1.StatsService over the samplers' cached snapshots. No call makes
// a subject work. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_STATS_SERVICE_H_
#define MEMTUNED_DAEMON_RPC_STATS_SERVICE_H_

#include <atomic>
#include <memory>

#include "daemon/rpc/gate.h"
#include "daemon/rpc/registry.h"
#include "daemon/rpc/rpc_observer.h"
#include "memtuned/v1/stats.grpc.pb.h"

namespace memtuned {

// Thread safety: any thread.
class StatsService final : public v1::StatsService::Service {
 public:
  static constexpr int kMaxWatchers = 64;

  // `observer` may be null.
  StatsService(const Registry* registry, Gate* gate, RpcObserver* observer)
      : registry_(registry), gate_(gate), observer_(observer) {}

  grpc::Status GetSnapshot(grpc::ServerContext* context,
                           const v1::GetSnapshotRequest* request,
                           v1::GetSnapshotResponse* response) override;
  grpc::Status ListZones(grpc::ServerContext* context,
                         const v1::ListZonesRequest* request,
                         v1::ListZonesResponse* response) override;
  grpc::Status ListPagesets(grpc::ServerContext* context,
                            const v1::ListPagesetsRequest* request,
                            v1::ListPagesetsResponse* response) override;
  grpc::Status ListProcesses(grpc::ServerContext* context,
                             const v1::ListProcessesRequest* request,
                             v1::ListProcessesResponse* response) override;
  grpc::Status WatchSnapshots(
      grpc::ServerContext* context, const v1::WatchSnapshotsRequest* request,
      grpc::ServerWriter<v1::WatchSnapshotsResponse>* writer) override;

 private:
  const Registry* const registry_;
  Gate* const gate_;
  RpcObserver* const observer_;
  std::atomic<int> watchers_{0};
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_STATS_SERVICE_H_
