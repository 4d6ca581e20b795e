// SPDX-License-Identifier: Apache-2.0
// Reads users and groups, and prints lists of them. Names are looked up here,
// once.
#include <grp.h>
#include <pwd.h>

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config.h"

namespace memtuned {
namespace {

constexpr char kEveryone[] = "*";

// A number; the highest one means "none" to the kernel.
bool IsId(const std::string& text, uint32_t& id) {
  return absl::SimpleAtoi(text, &id) &&
         text.find_first_of("+- ") == std::string::npos &&
         id != std::numeric_limits<uint32_t>::max();
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

absl::Status AddToUserList(const std::string& key, const std::string& text,
                           UserList& list) {
  uint32_t id = 0;
  if (key == "groups") {
    absl::Status found = ReadGroup(text, id);
    if (found.ok()) list.groups.push_back(id);
    return found;
  }
  if (text == kEveryone) {
    list.everyone = true;
  } else if (UserId(text, id)) {
    list.users.push_back(id);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", Echo(text), "; allowed a uid, the name of a user, or '*'"));
  }
  return absl::OkStatus();
}

std::vector<std::string> UsersOf(const UserList& list) {
  std::vector<std::string> users = Numbers(list.users);
  if (list.everyone) users.push_back(kEveryone);
  return users;
}

std::vector<std::string> GroupsOf(const UserList& list) {
  return Numbers(list.groups);
}

std::string YamlList(const std::vector<std::string>& items) {
  return absl::StrCat(
      "[",
      absl::StrJoin(items, ", ",
                    [](std::string* out, const std::string& item) {
                      out->append(YamlScalar(item));
                    }),
      "]");
}

std::string UserListText(const UserList& list) {
  std::vector<std::string> parts;
  if (!UsersOf(list).empty()) {
    parts.push_back(absl::StrCat("users: ", YamlList(UsersOf(list))));
  }
  if (!GroupsOf(list).empty()) {
    parts.push_back(absl::StrCat("groups: ", YamlList(GroupsOf(list))));
  }
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

}  // namespace memtuned
