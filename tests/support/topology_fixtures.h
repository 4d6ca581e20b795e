// SPDX-License-Identifier: Apache-2.0
// The described machines that tests load: hwloc XML files in topology/,
// archives of /sys trees in topology/fsroot/ of the fixtures' directory.
#ifndef MEMTUNED_TESTS_SUPPORT_TOPOLOGY_FIXTURES_H_
#define MEMTUNED_TESTS_SUPPORT_TOPOLOGY_FIXTURES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace memtuned {

// MEMTUNED_FIXTURES, else beside the source; may not exist.
inline std::filesystem::path FixturesRoot() {
  if (const char* root = std::getenv("MEMTUNED_FIXTURES")) return root;
  const char* source = std::getenv("MEMTUNED_SOURCE_DIR");
  return std::filesystem::path(source != nullptr ? source : ".") /
         "../shared/fixtures";
}

// Files of a folder of the fixtures, sorted; none where there is no folder.
inline std::vector<std::filesystem::path> FixtureFiles(
    const std::string& folder, const std::string& extension) {
  std::error_code absent;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(FixturesRoot() / folder, absent)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Unpacks the archive of a /sys tree into an empty directory. Needs tar and
// bzip2. Returns: the tree's root; "" on failure.
inline std::string UnpackTree(const std::filesystem::path& archive,
                              const std::string& directory) {
  const std::string command =
      "tar -xjf '" + archive.string() + "' -C '" + directory + "'";
  if (std::system(command.c_str()) != 0) return "";
  if (std::filesystem::exists(directory + "/sys")) return directory;
  return std::filesystem::directory_iterator(directory)->path();
}

inline void ExpectRefusedWithReason(const absl::Status& status,
                                    const std::string& name) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
  EXPECT_GT(status.message().size(), 20u) << name;
}

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_SUPPORT_TOPOLOGY_FIXTURES_H_
