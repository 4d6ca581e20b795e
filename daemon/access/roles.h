// SPDX-License-Identifier: Apache-2.0
// Which role a caller has on a subject. Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_ROLES_H_
#define MEMTUNED_DAEMON_ACCESS_ROLES_H_

#include <string>
#include <vector>

#include "daemon/access/caller.h"
#include "daemon/access/role_config.h"

namespace memtuned {

// Root and the daemon's own user are admin whatever the grants say: they can
// change its files and memory anyway. Everyone else has the highest role of
// the grants that name them, none without one.
//
// Thread safety: immutable.
class Roles {
 public:
  Roles(std::vector<RoleGrant> grants, uint32_t own_uid)
      : grants_(std::move(grants)), own_uid_(own_uid) {}

  // "pools/default"; "" is a subject that only grants for all cover.
  Role On(const Caller& caller, const std::string& subject) const;
  // The highest one the caller has on any subject.
  Role OnAny(const Caller& caller) const;

 private:
  const std::vector<RoleGrant> grants_;
  const uint32_t own_uid_;
};

// What holds without the key roles: members of the socket's group are
// operators, others who can connect viewers, TLS callers nothing.
std::vector<RoleGrant> DefaultGrants(uint32_t socket_gid);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_ROLES_H_
