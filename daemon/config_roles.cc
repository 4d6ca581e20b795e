// SPDX-License-Identifier: Apache-2.0
// Reads roles: entries of {role, users, groups, identities, subjects}.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/config.h"

namespace memtuned {
namespace {

constexpr size_t kMaxGrants = 256;
constexpr size_t kMaxWordBytes = 2048;
constexpr char kKeys[] = "role, users, groups, identities, subjects";

absl::Status BadRole(const std::string& field, const std::string& text,
                     const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("roles.", field, " is ", Echo(text), "; allowed ", allowed));
}

// One word without control characters.
bool IsWord(const std::string& text) {
  return !text.empty() && text.size() <= kMaxWordBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) > ' ' && c != 0x7f;
         });
}

absl::Status AddIdentity(const std::string& text, RoleGrant& grant) {
  const bool below = absl::EndsWith(text, "*");
  const bool below_spiffe = absl::StartsWith(text, "spiffe://") &&
                            absl::EndsWith(text, "/*") &&
                            text.size() > sizeof("spiffe:///*") - 1;
  if (!IsWord(text) || (below && !below_spiffe)) {
    return BadRole("identities", text,
                   "the SPIFFE id, URI or DNS name of a certificate, or "
                   "spiffe://DOMAIN/PATH/* for all below it");
  }
  grant.identities.push_back(text);
  return absl::OkStatus();
}

absl::Status SetRole(const std::string& text, RoleGrant& grant) {
  for (const Role role : {Role::kViewer, Role::kOperator, Role::kAdmin}) {
    if (text == RoleName(role)) grant.role = role;
  }
  if (grant.role != Role::kNone) return absl::OkStatus();
  return BadRole("role", text, "viewer, operator, admin");
}

absl::Status AddPart(const std::string& key, const std::string& text,
                     RoleGrant& grant) {
  if (key == "role") return SetRole(text, grant);
  if (key == "identities") return AddIdentity(text, grant);
  if (key == "users" || key == "groups") {
    UserList list;
    const absl::Status added = AddToUserList(key, text, list);
    if (!added.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("roles.", key, " ", std::string(added.message())));
    }
    grant.every_user = grant.every_user || list.everyone;
    grant.users.insert(grant.users.end(), list.users.begin(), list.users.end());
    grant.groups.insert(grant.groups.end(), list.groups.begin(),
                        list.groups.end());
    return absl::OkStatus();
  }
  if (key == "subjects") {
    if (!IsWord(text)) return BadRole(key, text, "a subject, as pools/default");
    grant.subjects.push_back(text);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("roles: ", Echo(key), " is not a key; allowed ", kKeys));
}

}  // namespace

absl::StatusOr<RoleText> SplitRole(const std::string& where,
                                   const std::string& text) {
  const std::vector<std::string> items = absl::StrSplit(text, ',');
  RoleText role{where, {{where, "role", items[0]}}};
  for (size_t i = 1; i < items.size(); ++i) {
    const size_t at = items[i].find('=');
    if (at == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, Echo(items[i]),
                       " has no '='; allowed users=, groups=, "
                       "identities=, subjects=, each once or more"));
    }
    role.parts.push_back(
        {where, items[i].substr(0, at), items[i].substr(at + 1)});
  }
  return role;
}

absl::Status AddRole(const RoleText& text, Config& config) {
  RoleGrant grant;
  bool has_role = false;
  for (const RoleText::Part& part : text.parts) {
    if (part.key == "role" && std::exchange(has_role, true)) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.where, "roles.role is given twice"));
    }
    const absl::Status added = AddPart(part.key, part.value, grant);
    if (!added.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.where, std::string(added.message())));
    }
  }
  const char* missing = nullptr;
  if (!has_role) missing = "role";
  if (!grant.every_user && grant.users.empty() && grant.groups.empty() &&
      grant.identities.empty()) {
    missing = "users, groups or identities";
  }
  if (missing != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.where, "roles: an entry has no ", missing, "; allowed ", kKeys));
  }
  if (config.roles.size() >= kMaxGrants) {
    return absl::InvalidArgumentError(absl::StrCat(
        text.where, "roles has too many entries; allowed ", kMaxGrants));
  }
  config.roles.push_back(std::move(grant));
  return absl::OkStatus();
}

absl::Status CheckRoles(const Config& config) {
  std::vector<std::string> known;
  for (const PoolConfig& pool : config.pools) {
    known.push_back(absl::StrCat("pools/", pool.name));
  }
  for (const RoleGrant& grant : config.roles) {
    for (const std::string& subject : grant.subjects) {
      if (std::find(known.begin(), known.end(), subject) != known.end()) {
        continue;
      }
      return BadRole("subjects", subject, absl::StrJoin(known, ", "));
    }
  }
  return absl::OkStatus();
}

std::string RolesText(const Config& config) {
  std::string text;
  for (const RoleGrant& grant : config.roles) {
    const UserList list{grant.every_user, grant.users, grant.groups};
    absl::StrAppend(&text, "  - role: '", RoleName(grant.role), "'\n");
    const std::pair<const char*, std::vector<std::string>> lists[] = {
        {"users", UsersOf(list)},
        {"groups", GroupsOf(list)},
        {"identities", grant.identities},
        {"subjects", grant.subjects}};
    for (const auto& [key, items] : lists) {
      if (items.empty()) continue;
      absl::StrAppend(&text, "    ", key, ": ", YamlList(items), "\n");
    }
  }
  return text.empty() ? text : absl::StrCat("roles:\n", text);
}

}  // namespace memtuned
