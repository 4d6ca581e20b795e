// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a Unix socket, as the kernel tells it. Below
// every other file of the daemon.
#ifndef MEMTUNED_DAEMON_UNIX_PEER_H_
#define MEMTUNED_DAEMON_UNIX_PEER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace memtuned {

// As of connect(). A user or group that the daemon's user namespace does not
// know is 65534 here.
struct UnixPeer {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;  // supplementary
  int pid = 0;                   // 0: of another pid namespace
};

// Errors: kUnauthenticated when `fd` is no Unix socket with another end.
absl::StatusOr<UnixPeer> PeerOf(int fd);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_UNIX_PEER_H_
