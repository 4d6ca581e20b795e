// SPDX-License-Identifier: Apache-2.0
// Where the daemon is: reading an address, and saying in words why nobody
// answers there. Plain sockets and files; knows no gRPC.
#ifndef MEMTUNED_CLIENT_CTL_TARGET_H_
#define MEMTUNED_CLIENT_CTL_TARGET_H_

#include <string>

#include "absl/status/statusor.h"

namespace memtuned::ctl {

inline constexpr char kDefaultTarget[] = "unix:/run/memtuned/memtuned.sock";

// A Unix socket that a daemon should listen on.
struct Target {
  std::string path;  // of the socket

  // "unix:/run/memtuned/memtuned.sock": as shown and as gRPC takes it.
  std::string Address() const { return "unix:" + path; }
};

// Reads "unix:PATH", "unix:///PATH" or "/PATH"; "" means $MEMTUNED_TARGET,
// else kDefaultTarget.
// Errors: kInvalidArgument for anything else (TCP needs TLS, which this
// version does not speak) and for paths that no socket can have.
absl::StatusOr<Target> ParseTarget(const std::string& text);

// Looks at the socket without connecting.
// Errors: kUnavailable when it is missing or no socket, kPermissionDenied
// when this user may not connect; the message says who would be allowed.
absl::Status CheckSocket(const Target& target);

// Why a connection failed although CheckSocket() was content. Connects once.
// Blocks: at most for the time a full backlog takes to refuse.
absl::Status ExplainFailure(const Target& target, const absl::Status& failure);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_TARGET_H_
