// SPDX-License-Identifier: Apache-2.0
#include "daemon/unix_peer.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

// One call while they fit, which they nearly always do; a kernel before 4.13
// does not tell them.
std::vector<uint32_t> PeerGroups(int fd) {
  std::vector<uint32_t> groups(32);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(uint32_t));
    const bool fits =
        getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0;
    if (!fits && errno != ERANGE) return {};
    groups.resize(bytes / sizeof(uint32_t));
    if (fits) return groups;
  }
  return {};
}

}  // namespace

absl::StatusOr<UnixPeer> PeerOf(int fd) {
  int family = 0;
  socklen_t family_bytes = sizeof(family);
  ucred peer{};
  socklen_t peer_bytes = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_bytes) != 0 ||
      family != AF_UNIX ||
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0) {
    return absl::UnauthenticatedError(
        absl::StrCat("cannot tell who calls: ", std::strerror(errno)));
  }
  return UnixPeer{peer.uid, peer.gid, PeerGroups(fd), peer.pid};
}

}  // namespace memtuned
