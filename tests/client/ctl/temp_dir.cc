// SPDX-License-Identifier: Apache-2.0
// Implementation of temp_dir.h.
#include "tests/client/ctl/temp_dir.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace memtuned::ctl {

TempDir::TempDir() {
  std::string name = "/tmp/ctl-test-XXXXXX";
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

int BindSocket(const std::string& path, bool listening) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return -1;
  }
  if (listening) listen(fd, 8);
  return fd;
}

}  // namespace memtuned::ctl
