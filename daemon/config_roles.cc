// SPDX-License-Identifier: Apache-2.0
// Reads roles: entries of {role, users, groups, identities, subjects}. Names
// of users and groups are looked up here, once.
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/config.h"

namespace memtuned {
namespace {

constexpr size_t kMaxGrants = 256;
constexpr size_t kMaxWordBytes = 2048;
constexpr char kEveryone[] = "*";
constexpr char kKeys[] = "role, users, groups, identities, subjects";

absl::Status BadRole(const std::string& field, const std::string& text,
                     const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("roles.", field, " is ", Echo(text), "; allowed ", allowed));
}

// A number; the highest one means "none" to the kernel.
bool IsId(const std::string& text, uint32_t& id) {
  return absl::SimpleAtoi(text, &id) &&
         text.find_first_of("+- ") == std::string::npos &&
         id != std::numeric_limits<uint32_t>::max();
}

// One word without control characters.
bool IsWord(const std::string& text) {
  return !text.empty() && text.size() <= kMaxWordBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) > ' ' && c != 0x7f;
         });
}

bool UserId(const std::string& text, uint32_t& id) {
  if (IsId(text, id)) return true;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(65536);
  getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) id = found->pw_uid;
  return found != nullptr;
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
  uint32_t id = 0;
  if (key == "role") return SetRole(text, grant);
  if (key == "identities") return AddIdentity(text, grant);
  if (key == "users") {
    if (text == kEveryone) {
      grant.every_user = true;
    } else if (UserId(text, id)) {
      grant.users.push_back(id);
    } else {
      return BadRole(key, text, "a uid, the name of a user, or '*'");
    }
    return absl::OkStatus();
  }
  if (key == "groups") {
    const absl::Status found = ReadGroup(text, id);
    if (!found.ok()) return BadRole(key, text, "a gid or the name of a group");
    grant.groups.push_back(id);
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

std::string ListText(const std::vector<std::string>& items) {
  return absl::StrCat(
      "[",
      absl::StrJoin(items, ", ",
                    [](std::string* out, const std::string& item) {
                      out->append(YamlScalar(item));
                    }),
      "]");
}

std::vector<std::string> Numbers(const std::vector<uint32_t>& ids) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const uint32_t id : ids) texts.push_back(absl::StrCat(id));
  return texts;
}

}  // namespace

absl::Status ReadGroup(const std::string& text, uint32_t& gid) {
  if (IsId(text, gid)) return absl::OkStatus();
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(1 << 20);
  getgrnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Echo(text), "; allowed a gid or the name of a group"));
  }
  gid = found->gr_gid;
  return absl::OkStatus();
}

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
    std::vector<std::string> users = Numbers(grant.users);
    if (grant.every_user) users.push_back(kEveryone);
    absl::StrAppend(&text, "  - role: '", RoleName(grant.role), "'\n");
    const std::pair<const char*, std::vector<std::string>> lists[] = {
        {"users", users},
        {"groups", Numbers(grant.groups)},
        {"identities", grant.identities},
        {"subjects", grant.subjects}};
    for (const auto& [key, items] : lists) {
      if (items.empty()) continue;
      absl::StrAppend(&text, "    ", key, ": ", ListText(items), "\n");
    }
  }
  return text.empty() ? text : absl::StrCat("roles:\n", text);
}

}  // namespace memtuned
