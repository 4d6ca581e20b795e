// SPDX-License-Identifier: Apache-2.0
// The address the metrics listen on, read once from configuration. Floor 4;
// knows nothing of HTTP.
#ifndef MEMTUNED_DAEMON_METRICS_LISTEN_ADDRESS_H_
#define MEMTUNED_DAEMON_METRICS_LISTEN_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace memtuned {

struct ListenAddress {
  std::string host;       // dotted IPv4
  int port = 0;           // 0..65535; 0: the system picks one
  bool loopback = false;  // host is in 127.0.0.0/8
  // "127.0.0.1:9750"
  std::string Text() const;
};

// Reads "HOST:PORT"; HOST is a dotted IPv4 address or localhost.
// Errors: kInvalidArgument naming text and what is allowed. IPv6 is refused:
// Debian's civetweb is built without it.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_METRICS_LISTEN_ADDRESS_H_
