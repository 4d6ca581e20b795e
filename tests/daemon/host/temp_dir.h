// SPDX-License-Identifier: Apache-2.0
// A directory of its own for one test, gone afterwards.
#ifndef MEMTUNED_TESTS_DAEMON_HOST_TEMP_DIR_H_
#define MEMTUNED_TESTS_DAEMON_HOST_TEMP_DIR_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace memtuned {

class TempDir {
 public:
  TempDir() : path_(::testing::TempDir() + "memtuned-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file, with the directories it needs. Returns: its path.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

 private:
  std::string path_;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_HOST_TEMP_DIR_H_
