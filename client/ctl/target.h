// SPDX-License-Identifier: Apache-2.0
// Where a daemon is: reading an address, and saying in words why nobody
// answers there. Plain sockets and files; knows no gRPC.
#ifndef MEMTUNED_CLIENT_CTL_TARGET_H_
#define MEMTUNED_CLIENT_CTL_TARGET_H_

#include <string>

#include "absl/status/statusor.h"

namespace memtuned::ctl {

inline constexpr char kDefaultTarget[] = "unix:/run/memtuned/memtuned.sock";

// What a daemon should listen on: a Unix socket, or a TCP port with TLS.
struct Target {
  std::string path = {};  // of the socket; "" for TCP
  std::string host = {};  // TCP: name or address
  int port = 0;

  bool is_tcp() const { return path.empty(); }
  // "unix:/run/memtuned/memtuned.sock", "host:9751", "[::1]:9751": as shown and
  // as gRPC takes it.
  std::string Address() const;
};

// Reads "unix:PATH", "unix:///PATH" or "/PATH", "HOST:PORT", "[IPV6]:PORT" or
// "dns:///HOST:PORT"; "" means $MEMTUNED_TARGET, else kDefaultTarget.
// Errors: kInvalidArgument for anything else and for paths that no socket can
// have.
absl::StatusOr<Target> ParseTarget(const std::string& text);

// Looks at the socket without connecting; content with any TCP port.
// Errors: kUnavailable when it is missing or no socket, kPermissionDenied
// when this user may not connect; the message says who would be allowed.
absl::Status CheckSocket(const Target& target);

// Why a connection failed although CheckSocket() was content. Connects once.
// Blocks: at most for the time a full backlog takes to refuse.
absl::Status ExplainFailure(const Target& target, const absl::Status& failure);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_TARGET_H_
