// SPDX-License-Identifier: Apache-2.0
// flock for the folder; a connect tells a stale socket from a live one.
#include "daemon/runtime_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memtuned {
namespace {

absl::Status Errno(const std::string& what) {
  const int error = errno;
  return absl::ErrnoToStatus(error, what);
}

// Makes the folder and those above it; refuses one that others may change.
absl::Status MakeFolder(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(dir).parent_path(),
                                      error);
  if (mkdir(dir.c_str(), 0755) == 0) {
    // Whatever the umask: the sockets inside have modes of their own.
    if (chmod(dir.c_str(), 0755) != 0) return Errno(dir);
  } else if (errno != EEXIST) {
    return Errno(absl::StrCat("cannot make the folder ", dir));
  }
  struct stat info {};
  if (stat(dir.c_str(), &info) != 0) return Errno(dir);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(dir, " is not a folder"));
  }
  if (info.st_uid != geteuid() || (info.st_mode & 0022) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        dir, " belongs to uid ", info.st_uid, " and has mode ",
        absl::StrFormat("%04o", info.st_mode & 07777), "; allowed: uid ",
        geteuid(), ", writable for nobody else"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> TakeLock(const std::string& path) {
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Errno(absl::StrCat("cannot open ", path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const bool known = pread(fd, pid, sizeof(pid) - 1, 0) > 0;
    close(fd);
    return absl::AlreadyExistsError(absl::StrCat(
        "another daemon", known ? absl::StrCat(" (pid ", atoi(pid), ")") : "",
        " holds ", path, "; give this one a --runtime-dir of its own"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) !=
                                   static_cast<ssize_t>(pid.size())) {
    const absl::Status status = Errno(absl::StrCat("cannot write ", path));
    close(fd);
    return status;
  }
  return fd;
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Errno(path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is in the way: it is not a socket"));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is too long"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Errno("socket");
  const bool stale = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                             sizeof(address)) != 0 &&
                     errno == ECONNREFUSED;
  close(fd);
  if (!stale) {
    return absl::AlreadyExistsError(
        absl::StrCat("somebody listens on ", path, " already"));
  }
  return unlink(path.c_str()) == 0 ? absl::OkStatus() : Errno(path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RuntimeDir>> RuntimeDir::Claim(
    const std::string& dir, const std::string& socket_path) {
  for (const std::string& folder : {dir, dir + "/pools"}) {
    const absl::Status made = MakeFolder(folder);
    if (!made.ok()) return made;
  }
  const auto lock = TakeLock(dir + "/memtuned.lock");
  if (!lock.ok()) return lock.status();
  std::unique_ptr<RuntimeDir> claimed(new RuntimeDir(*lock));
  const absl::Status removed = RemoveStaleSocket(socket_path);
  if (!removed.ok()) return removed;
  return claimed;
}

RuntimeDir::RuntimeDir(int lock_fd) : lock_fd_(lock_fd) {}

RuntimeDir::~RuntimeDir() { close(lock_fd_); }

}  // namespace memtuned
