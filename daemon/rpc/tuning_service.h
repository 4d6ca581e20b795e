// SPDX-License-Identifier: Apache-2.0
// memtuned.v1.TuningService: checks a request against what the subject has,
// takes the subject's turn, applies, and answers with the record. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_TUNING_SERVICE_H_
#define MEMTUNED_DAEMON_RPC_TUNING_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/rpc/registry.h"
#include "daemon/rpc/request_log.h"
#include "memtuned/v1/tuning.grpc.pb.h"

namespace memtuned {

// Thread safety: any thread.
class TuningService final : public v1::TuningService::Service {
 public:
  explicit TuningService(const Registry* registry);

  grpc::Status ListTunables(grpc::ServerContext* context,
                            const v1::ListTunablesRequest* request,
                            v1::ListTunablesResponse* response) override;
  grpc::Status GetTunable(grpc::ServerContext* context,
                          const v1::GetTunableRequest* request,
                          v1::GetTunableResponse* response) override;
  grpc::Status SetTunables(grpc::ServerContext* context,
                           const v1::SetTunablesRequest* request,
                           v1::SetTunablesResponse* response) override;
  grpc::Status Recalculate(grpc::ServerContext* context,
                           const v1::RecalculateRequest* request,
                           v1::RecalculateResponse* response) override;
  grpc::Status Drain(grpc::ServerContext* context,
                     const v1::DrainRequest* request,
                     v1::DrainResponse* response) override;

 private:
  template <class Request, class Response>
  absl::Status Mutate(grpc::ServerContext* context, const Request& request,
                      v1::ChangeKind kind, Response& response,
                      const std::function<absl::Status(
                          const ServedSubject&, const ChangeContext&)>& apply);

  const Registry* const registry_;
  // One for each subject; the map itself never changes.
  std::map<std::string, std::unique_ptr<RequestLog>> logs_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_TUNING_SERVICE_H_
