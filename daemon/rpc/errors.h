// SPDX-License-Identifier: Apache-2.0
// Errors as the API shows them: an absl::Status that carries google.rpc
// details as payloads, and the one place that turns it into a grpc::Status.
// Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_ERRORS_H_
#define MEMTUNED_DAEMON_RPC_ERRORS_H_

#include <grpcpp/support/status.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace memtuned {

inline constexpr char kErrorDomain[] = "memtuned.v1";

// Adds ErrorInfo{reason, domain, metadata}; replaces an earlier one.
absl::Status WithReason(
    const absl::Status& status, const std::string& reason,
    const std::map<std::string, std::string>& metadata = {});

// There is an ErrorInfo already.
bool HasReason(const absl::Status& status);

// Adds RetryInfo.
absl::Status WithRetryAfter(const absl::Status& status, double seconds);

// kInvalidArgument with BadRequest for one field. `description` names the
// value and what is allowed.
absl::Status BadField(const std::string& field, const std::string& description,
                      const std::string& reason = "INVALID_FIELD");

// kUnimplemented: a field or value kept for a later release.
absl::Status NotYet(const std::string& field, const std::string& description);

// Collects what is wrong with a request, so that the caller sees all at once.
class FieldErrors {
 public:
  static constexpr size_t kMaxReported = 8;

  void Add(const std::string& field, const std::string& description);
  bool empty() const { return errors_.empty(); }
  // OK when empty, else kInvalidArgument with BadRequest.
  absl::Status ToStatus() const;

 private:
  std::vector<std::pair<std::string, std::string>> errors_;
};

// The value of a caller, escaped and cut for a message.
std::string Quoted(const std::string& value);
// "a, b, c and 12 more".
std::string Listed(const std::vector<std::string>& names);

// Codes are the same numbers. Every error gets an ErrorInfo: the payload's, or
// one with the code's name as reason. Message and details are cut to fit the
// 8 KiB a gRPC trailer may have.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_ERRORS_H_
