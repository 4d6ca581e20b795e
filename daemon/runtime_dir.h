// SPDX-License-Identifier: Apache-2.0
// The folder of sockets and the lock that keeps two daemons out of it.
// Floor 5.
#ifndef MEMTUNED_DAEMON_RUNTIME_DIR_H_
#define MEMTUNED_DAEMON_RUNTIME_DIR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace memtuned {

// Holds the folder until destroyed; the kernel lets go of the lock when the
// process ends in any way.
class RuntimeDir {
 public:
  // Makes DIR and DIR/pools, mode 0755, takes the lock DIR/memtuned.lock, and
  // removes the socket at `socket_path` if nobody listens on it.
  // Errors: kPermissionDenied (folder cannot be made or is writable for
  // others), kAlreadyExists (a daemon has the lock or answers on the socket),
  // kFailedPrecondition (something that is no socket or folder is in the way).
  static absl::StatusOr<std::unique_ptr<RuntimeDir>> Claim(
      const std::string& dir, const std::string& socket_path);

  ~RuntimeDir();
  RuntimeDir(const RuntimeDir&) = delete;
  RuntimeDir& operator=(const RuntimeDir&) = delete;

 private:
  explicit RuntimeDir(int lock_fd);

  const int lock_fd_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RUNTIME_DIR_H_
