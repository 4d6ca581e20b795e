// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/socket_reach.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace memtuned {
namespace {

// By the user database: a process may have been given other groups.
bool IsInGroup(uint32_t uid, gid_t gid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(65536);
  getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return false;
  int count = 0;
  getgrouplist(found->pw_name, found->pw_gid, nullptr, &count);
  std::vector<gid_t> groups(static_cast<size_t>(std::max(count, 0)));
  if (getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0) {
    return false;
  }
  return std::find(groups.begin(), groups.end(), gid) != groups.end();
}

}  // namespace

std::string KeptOutBySocket(const PoolUsers& users, const struct stat& socket) {
  if ((socket.st_mode & S_IWOTH) != 0) return "";
  const bool group_may = (socket.st_mode & S_IWGRP) != 0;
  std::vector<std::string> kept_out;
  for (const UserList* list : {&users.attach, &users.observe}) {
    for (uint32_t uid : list->users) {
      if (uid == 0 || uid == socket.st_uid ||
          (group_may && IsInGroup(uid, socket.st_gid))) {
        continue;
      }
      kept_out.push_back(absl::StrCat("uid ", uid));
    }
    for (uint32_t gid : list->groups) {
      if (group_may && gid == socket.st_gid) continue;
      kept_out.push_back(absl::StrCat("gid ", gid));
    }
  }
  return absl::StrJoin(kept_out, ", ");
}

}  // namespace memtuned
