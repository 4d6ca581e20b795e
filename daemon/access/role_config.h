// SPDX-License-Identifier: Apache-2.0
// Roles, and who has them: filled by daemon/config_roles.cc, read by Roles.
// Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_ROLE_CONFIG_H_
#define MEMTUNED_DAEMON_ACCESS_ROLE_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

namespace memtuned {

// Each may do what those before it may.
enum class Role { kNone, kViewer, kOperator, kAdmin };

constexpr const char* RoleName(Role role) {
  constexpr const char* kNames[] = {"none", "viewer", "operator", "admin"};
  return kNames[static_cast<int>(role)];
}

// One entry of the key roles: these callers have the role on these subjects.
struct RoleGrant {
  Role role = Role::kNone;
  // Everyone who can connect to the Unix socket.
  bool every_user = false;
  std::vector<uint32_t> users = {};   // uids
  std::vector<uint32_t> groups = {};  // gids, supplementary groups count
  // Of TLS callers: the SPIFFE id, URI or DNS name of the certificate, or
  // "spiffe://domain/path/*" for all below it.
  std::vector<std::string> identities = {};
  // "pools/default"; empty: all.
  std::vector<std::string> subjects = {};
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_ROLE_CONFIG_H_
