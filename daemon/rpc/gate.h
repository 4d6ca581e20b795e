// SPDX-License-Identifier: Apache-2.0
// What every call passes before it is worked on: who calls, the role it
// takes, and for mutating calls a deadline and the caller's budget. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_GATE_H_
#define MEMTUNED_DAEMON_RPC_GATE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/access/audit_log.h"
#include "daemon/access/call_budget.h"
#include "daemon/access/caller.h"
#include "daemon/access/method_table.h"
#include "daemon/access/roles.h"
#include "daemon/rpc/rpc_observer.h"

namespace memtuned {

// A call as its handler sees it.
struct CallInfo {
  const char* method;  // a name of the method table
  // The request's parent or name: a subject, or something of one.
  std::string resource = {};
  // Of a mutating call, for the audit log.
  std::string request_id = {};
  std::string reason = {};
};

// Thread safety: any thread.
class Gate {
 public:
  // `audit` and `observer` may be null and outlive the gate. Lets nobody but
  // the owners in until SetGrants.
  Gate(AuditLog* audit, RpcObserver* observer, int mutations_per_minute);

  // Calls that are in already stay in.
  void SetGrants(std::vector<RoleGrant> grants) EXCLUDES(mutex_);
  void SetMutationsPerMinute(int per_minute) {
    budget_.SetPerMinute(per_minute);
  }

  // The first thing a handler of ours does.
  // Errors: kUnauthenticated (CALLER_UNKNOWN), kPermissionDenied
  // (ROLE_MISSING), kInvalidArgument (DEADLINE_MISSING), kResourceExhausted
  // (TOO_MANY_CALLS) with RetryInfo; each is in the audit log.
  absl::StatusOr<Caller> Admit(const grpc::ServerContext& context,
                               const CallInfo& call) EXCLUDES(mutex_);

  // The same for health and reflection, whose handlers are gRPC's.
  absl::Status AdmitToLibrary(const grpc::ServerContextBase& context,
                              const std::string& path) EXCLUDES(mutex_);

  // Whether the subject is shown to the caller in lists.
  bool MaySee(const Caller& caller, const std::string& subject) const
      EXCLUDES(mutex_);

  // A line about a call that was let in.
  void Audit(const Caller& caller, const CallInfo& call,
             const std::string& decision, const LogFields& more);

 private:
  void Write(const LogFields& fields);
  std::shared_ptr<const Roles> roles() const EXCLUDES(mutex_);
  absl::StatusOr<Caller> Identify(const grpc::ServerContextBase& context,
                                  const CallInfo& call);
  absl::Status CheckRole(const Caller& caller, const CallInfo& call,
                         const MethodRule& rule);
  absl::Status CheckMutation(const Caller& caller, const CallInfo& call,
                             const grpc::ServerContext& context);
  void AuditRefusal(const Caller& caller, const CallInfo& call,
                    const std::string& decision, const absl::Status& status,
                    const CallBudget::Answer& budget);

  AuditLog* const audit_;
  RpcObserver* const observer_;
  CallBudget budget_;
  mutable Mutex mutex_;
  std::shared_ptr<const Roles> roles_ GUARDED_BY(mutex_);
};

// Ends calls of health and reflection that the gate refuses, with the code
// and the message only: gRPC takes no details there.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
MakeLibraryGate(Gate* gate);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_GATE_H_
