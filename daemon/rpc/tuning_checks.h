// SPDX-License-Identifier: Apache-2.0
// Checks of mutating requests: everything that can be refused before a
// subject is asked, with the field's name. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_TUNING_CHECKS_H_
#define MEMTUNED_DAEMON_RPC_TUNING_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/registry.h"
#include "daemon/subject.h"
#include "memtuned/v1/tuning.pb.h"

namespace memtuned {

// reason, request_id and etag: length and characters.
void CheckTexts(const std::string& reason, const std::string& request_id,
                const std::string& etag, FieldErrors& errors);

// No change of this release has a risk, so no id can have been named.
absl::Status CheckRisks(
    const google::protobuf::RepeatedPtrField<std::string>& accept_risks);

// Reads assignments against the subject's tunables.
// Errors: kInvalidArgument naming each bad assignment; kFailedPrecondition
// (READ_ONLY).
absl::StatusOr<std::vector<TunableAssignment>> ReadAssignments(
    const v1::SetTunablesRequest& request, const Subject& subject);

struct ProcessLimit {
  ProcessId process;
  TunableValue value;
};
// Reads which process, and its limit. Errors: kInvalidArgument naming each bad
// field.
absl::StatusOr<ProcessLimit> ReadProcessLimit(
    const v1::SetProcessLimitRequest& request);

struct ProcessMems {
  ProcessId process;
  std::optional<std::vector<int>> nodes;  // nothing: all
};
absl::StatusOr<ProcessMems> ReadProcessMems(
    const v1::SetMemsAllowedRequest& request);

// Reads a scope: nodes, zones and CPUs must exist, once each, and together
// select a zone. `cpus_allowed` is false for a recalculation.
// Blocks: for the first sample, until `deadline`.
absl::StatusOr<Scope> ReadScope(const v1::Scope& scope, bool cpus_allowed,
                                const ServedSubject& served,
                                SteadyTime deadline);

// The latest change of a subject through this daemon.
struct LastChange {
  std::string caller;
  int64_t generation = 0;
};

// A subject's refusal as the API tells it: ETAG_MISMATCH with the present
// etag and, when it is known, who made that change; READ_ONLY, and so on. One
// that has a reason already stays as it is.
absl::Status Explain(const absl::Status& status, const Subject& subject,
                     const LastChange& last);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_TUNING_CHECKS_H_
