// SPDX-License-Identifier: Apache-2.0
#include "daemon/user_list.h"

#include <algorithm>

namespace memtuned {
namespace {

bool Has(const std::vector<uint32_t>& ids, uint32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

bool UserList::Names(const UnixPeer& peer) const {
  return everyone || Has(users, peer.uid) || Has(groups, peer.gid) ||
         std::any_of(peer.groups.begin(), peer.groups.end(),
                     [this](uint32_t gid) { return Has(groups, gid); });
}

PoolUse PoolUsers::UseOf(const UnixPeer& peer, uint32_t own_uid) const {
  if (peer.uid == 0 || peer.uid == own_uid || attach.empty() ||
      attach.Names(peer)) {
    return PoolUse::kAttach;
  }
  return observe.Names(peer) ? PoolUse::kObserve : PoolUse::kNone;
}

}  // namespace memtuned
