// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/peer.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "daemon/rpc/errors.h"

namespace memtuned {
namespace {

// What AddInsecureChannelFromFd calls a peer: "fd:12".
constexpr char kDescriptor[] = "fd:";

absl::Status Unknown(const std::string& message) {
  return WithReason(absl::UnauthenticatedError(message), "CALLER_UNKNOWN");
}

absl::StatusOr<Caller> TlsCaller(const grpc::AuthContext& context) {
  if (!context.IsPeerAuthenticated()) {
    return Unknown("the connection does not say who calls");
  }
  for (const char* kind :
       {GRPC_PEER_SPIFFE_ID_PROPERTY_NAME, GRPC_PEER_URI_PROPERTY_NAME,
        GRPC_PEER_DNS_PROPERTY_NAME}) {
    const std::vector<grpc::string_ref> names =
        context.FindPropertyValues(kind);
    if (names.empty() || names.front().empty()) continue;
    Caller caller;
    caller.kind = Caller::Kind::kTls;
    caller.identity.assign(names.front().data(), names.front().size());
    return caller;
  }
  return Unknown(
      "the certificate names nobody; it needs a URI or a DNS name as subject "
      "alternative name");
}

}  // namespace

absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context) {
  const std::string peer = context.peer();
  int fd = -1;
  if (absl::StartsWith(peer, kDescriptor) &&
      absl::SimpleAtoi(peer.substr(sizeof(kDescriptor) - 1), &fd)) {
    return UnixCaller(fd);
  }
  return TlsCaller(*context.auth_context());
}

}  // namespace memtuned
