// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/unix_listener.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

constexpr int kBacklog = 128;

absl::Status CannotListen(const std::string& path, const char* what) {
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on unix:", path, ": ", what, ": ", std::strerror(errno)));
}

// Out of descriptors or memory: the connection stays in the backlog and
// accept() would fail again at once.
bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Start(
    const UnixListenerOptions& options, std::function<void(int)> connected) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotListen(options.path, "socket");
  std::unique_ptr<UnixListener> listener(new UnixListener(options.path, fd));
  const absl::Status open = listener->Open(options);
  if (!open.ok()) return open;
  listener->thread_ =
      std::thread([raw = listener.get(), connected = std::move(connected)] {
        pthread_setname_np(pthread_self(), "api-accept");
        raw->Accept(connected);
      });
  return listener;
}

// A socket refuses connections until listen().
absl::Status UnixListener::Open(const UnixListenerOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return CannotListen(path_, "bind");
  }
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0) {
    return CannotListen(path_, "bind");
  }
  bound_ = true;
  if (options.gid >= 0 && chown(path_.c_str(), static_cast<uid_t>(-1),
                                static_cast<gid_t>(options.gid)) != 0) {
    return CannotListen(path_, "cannot set its group");
  }
  struct stat info {};
  if (chmod(path_.c_str(), static_cast<mode_t>(options.mode)) != 0 ||
      stat(path_.c_str(), &info) != 0) {
    return CannotListen(path_, "cannot set its mode");
  }
  gid_ = info.st_gid;
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return CannotListen(path_, "eventfd");
  if (listen(socket_, kBacklog) != 0) return CannotListen(path_, "listen");
  return absl::OkStatus();
}

UnixListener::~UnixListener() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    // An eventfd at 0 takes a 1.
    static_cast<void>(write(stop_, &one, sizeof(one)) == sizeof(one));
    thread_.join();
  }
  close(socket_);
  if (stop_ >= 0) close(stop_);
  if (bound_) unlink(path_.c_str());
}

void UnixListener::Accept(const std::function<void(int)>& connected) {
  while (true) {
    pollfd waiting[] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
    poll(waiting, 2, -1);
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents == 0) continue;
    const int fd =
        accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      connected(fd);
    } else if (IsShortage(errno)) {
      LogEvent(LogLevel::kError, "accept-failed",
               {{"path", path_}, {"error", std::strerror(errno)}});
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

}  // namespace memtuned
