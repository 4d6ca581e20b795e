// SPDX-License-Identifier: Apache-2.0
// Users of this machine as a configuration names them, and who of them may use
// a pool. Below every other file of the daemon but unix_peer.
#ifndef MEMTUNED_DAEMON_USER_LIST_H_
#define MEMTUNED_DAEMON_USER_LIST_H_

#include <cstdint>
#include <vector>

#include "daemon/unix_peer.h"

namespace memtuned {

struct UserList {
  bool everyone = false;              // who can connect to the socket
  std::vector<uint32_t> users = {};   // uids
  std::vector<uint32_t> groups = {};  // gids, supplementary groups count

  bool empty() const { return !everyone && users.empty() && groups.empty(); }
  bool Names(const UnixPeer& peer) const;
  bool operator==(const UserList&) const = default;
};

// Each includes those before it.
enum class PoolUse { kNone, kObserve, kAttach };

// Who may use a pool, of those who can connect to its socket.
struct PoolUsers {
  // May attach, to read and to write. Empty: everyone.
  UserList attach = {};
  // May attach to read only, as those may who may attach.
  UserList observe = {};

  // Root and the daemon's own user (`own_uid`) may attach whatever the lists
  // say: they can open a pool's files anyway.
  PoolUse UseOf(const UnixPeer& peer, uint32_t own_uid) const;
  bool operator==(const PoolUsers&) const = default;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_USER_LIST_H_
