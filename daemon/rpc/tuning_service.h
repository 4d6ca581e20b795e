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
#include "daemon/rpc/gate.h"
#include "daemon/rpc/registry.h"
#include "daemon/rpc/request_log.h"
#include "daemon/rpc/tuning_checks.h"
#include "memtuned/v1/tuning.grpc.pb.h"

namespace memtuned {

// Thread safety: any thread.
class TuningService final : public v1::TuningService::Service {
 public:
  TuningService(const Registry* registry, Gate* gate);

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
  grpc::Status SetProcessLimit(grpc::ServerContext* context,
                               const v1::SetProcessLimitRequest* request,
                               v1::SetProcessLimitResponse* response) override;
  grpc::Status SetMemsAllowed(grpc::ServerContext* context,
                              const v1::SetMemsAllowedRequest* request,
                              v1::SetMemsAllowedResponse* response) override;

 private:
  struct SubjectChanges {
    RequestLog log;
    LastChange last;  // touched by the holder of the log's turn only
  };
  using Apply =
      std::function<absl::Status(const ServedSubject&, const ChangeContext&)>;

  // `method` is its name in the method table.
  template <class Request, class Response>
  grpc::Status Mutate(grpc::ServerContext* context, const char* method,
                      const Request& request, Response& response,
                      const Apply& apply);
  template <class Request, class Response>
  absl::Status MutateAdmitted(const grpc::ServerContext& context,
                              const Caller& caller, const CallInfo& call,
                              const Request& request, Response& response,
                              const Apply& apply);

  const Registry* const registry_;
  Gate* const gate_;
  // One for each subject; the map itself never changes.
  std::map<std::string, std::unique_ptr<SubjectChanges>> changes_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_TUNING_SERVICE_H_
