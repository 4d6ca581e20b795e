// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/caller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/unix_peer.h"

namespace memtuned {

std::string Caller::Text() const {
  return kind == Kind::kUnix ? absl::StrCat("uid:", uid)
                             : absl::StrCat("tls:", identity);
}

absl::StatusOr<Caller> UnixCaller(int fd) {
  auto peer = PeerOf(fd);
  if (!peer.ok()) return peer.status();
  Caller caller;
  caller.uid = peer->uid;
  caller.gid = peer->gid;
  caller.pid = peer->pid;
  caller.groups = std::move(peer->groups);
  return caller;
}

}  // namespace memtuned
