// SPDX-License-Identifier: Apache-2.0
// A folder that goes away with its owner; short enough for socket paths.
#ifndef MEMTUNED_TESTS_CLIENT_CTL_TEMP_DIR_H_
#define MEMTUNED_TESTS_CLIENT_CTL_TEMP_DIR_H_

#include <string>

namespace memtuned::ctl {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Binds a socket at `path`; listens only if told to.
// Returns: the descriptor, the caller's to close.
int BindSocket(const std::string& path, bool listening);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_TESTS_CLIENT_CTL_TEMP_DIR_H_
