// SPDX-License-Identifier: Apache-2.0
// The Unix socket of the API. gRPC would not tell who connects to a socket of
// its own, so connections are accepted here and handed on. Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_UNIX_LISTENER_H_
#define MEMTUNED_DAEMON_ACCESS_UNIX_LISTENER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"

namespace memtuned {

struct UnixListenerOptions {
  std::string path;
  // Whoever may write to it may connect.
  int mode = 0660;
  // Owning group; -1 leaves the daemon's.
  int64_t gid = -1;
};

// One thread. Thread safety: one caller starts and destroys it.
class UnixListener {
 public:
  // `connected` is called from the thread with a descriptor that does not
  // block and is now its own. Nobody can connect before mode and group are
  // set.
  // Errors: kUnavailable naming the path and what failed.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(
      const UnixListenerOptions& options, std::function<void(int)> connected);

  // Stops accepting and removes the socket.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  // Of the socket's file.
  uint32_t gid() const { return gid_; }

 private:
  UnixListener(std::string path, int socket)
      : path_(std::move(path)), socket_(socket) {}

  absl::Status Open(const UnixListenerOptions& options);
  void Accept(const std::function<void(int)>& connected);

  const std::string path_;
  const int socket_;
  bool bound_ = false;
  uint32_t gid_ = 0;
  int stop_ = -1;  // an eventfd, readable when it is time to end
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_UNIX_LISTENER_H_
