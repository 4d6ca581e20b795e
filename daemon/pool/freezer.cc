// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/freezer.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace memtuned {
namespace {

// Whether the file has such a line.
bool HasLine(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == wanted) return true;
  }
  return false;
}

}  // namespace

bool IsFrozen(const std::string& proc_root, const std::string& sys_root,
              int pid) {
  const std::string groups = sys_root + "/fs/cgroup";
  std::ifstream file(absl::StrCat(proc_root, "/", pid, "/cgroup"));
  for (std::string line; std::getline(file, line);) {
    // hierarchy:controllers:path; version 2 is "0::path".
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (line.rfind("0::", 0) == 0 &&
        HasLine(groups + parts[2] + "/cgroup.events", "frozen 1")) {
      return true;
    }
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::count(controllers.begin(), controllers.end(), "freezer") != 0 &&
        HasLine(groups + "/freezer" + parts[2] + "/freezer.state", "FROZEN")) {
      return true;
    }
  }
  return false;
}

}  // namespace memtuned
