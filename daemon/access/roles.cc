// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/roles.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace memtuned {
namespace {

template <class T>
bool Has(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool IdentityMatches(const std::string& pattern, const std::string& identity) {
  if (pattern.back() != '*') return pattern == identity;
  // "spiffe://domain/path/": something has to follow.
  const auto prefix = absl::string_view(pattern.data(), pattern.size() - 1);
  return identity.size() > prefix.size() && absl::StartsWith(identity, prefix);
}

bool Names(const RoleGrant& grant, const Caller& caller) {
  if (caller.kind == Caller::Kind::kTls) {
    return std::any_of(grant.identities.begin(), grant.identities.end(),
                       [&](const std::string& pattern) {
                         return IdentityMatches(pattern, caller.identity);
                       });
  }
  return grant.every_user || Has(grant.users, caller.uid) ||
         Has(grant.groups, caller.gid) ||
         std::any_of(caller.groups.begin(), caller.groups.end(),
                     [&](uint32_t gid) { return Has(grant.groups, gid); });
}

bool IsOwner(const Caller& caller, uint32_t own_uid) {
  return caller.kind == Caller::Kind::kUnix &&
         (caller.uid == 0 || caller.uid == own_uid);
}

}  // namespace

Role Roles::On(const Caller& caller, const std::string& subject) const {
  if (IsOwner(caller, own_uid_)) return Role::kAdmin;
  Role role = Role::kNone;
  for (const RoleGrant& grant : grants_) {
    const bool covers = grant.subjects.empty() || Has(grant.subjects, subject);
    if (covers && Names(grant, caller)) role = std::max(role, grant.role);
  }
  return role;
}

Role Roles::OnAny(const Caller& caller) const {
  if (IsOwner(caller, own_uid_)) return Role::kAdmin;
  Role role = Role::kNone;
  for (const RoleGrant& grant : grants_) {
    if (Names(grant, caller)) role = std::max(role, grant.role);
  }
  return role;
}

std::vector<RoleGrant> DefaultGrants(uint32_t socket_gid) {
  RoleGrant operators;
  operators.role = Role::kOperator;
  operators.groups = {socket_gid};
  RoleGrant viewers;
  viewers.role = Role::kViewer;
  viewers.every_user = true;
  return {operators, viewers};
}

}  // namespace memtuned
