// SPDX-License-Identifier: Apache-2.0
// Errors of calls: carries google.rpc.Status details from the daemon inside an
// absl::Status and prints them, as text for people or as a JSON object.
#ifndef MEMTUNED_CLIENT_CTL_RPC_ERROR_H_
#define MEMTUNED_CLIENT_CTL_RPC_ERROR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace grpc {
class Status;
}
namespace google::rpc {
class Status;
}

namespace memtuned::ctl {

// The same code and message; details (grpc-status-details-bin) are kept if
// they decode.
absl::Status FromGrpcStatus(const grpc::Status& status);

// The same error with another message.
absl::Status WithMessage(const absl::Status& status,
                         const std::string& message);

// Code, message and whatever details there are.
google::rpc::Status RpcStatusOf(const absl::Status& status);

// The reason of the ErrorInfo detail, as "ETAG_MISMATCH"; "" without one.
std::string ErrorReason(const absl::Status& status);

// The lines to print: the message with its reason, then each detail that the
// message does not say already, as "field: description". Control characters
// become blanks.
std::vector<std::string> ErrorLines(const absl::Status& status);

// {"error": {"code", "status", "message", "exit_code", "details": [...]}};
// details are the messages of google.rpc in proto JSON.
std::string ErrorJson(const absl::Status& status);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_RPC_ERROR_H_
