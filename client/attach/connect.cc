// SPDX-License-Identifier: Apache-2.0
// Connecting to a pool's socket, and saying in words why it did not work.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/attach/connection.h"

namespace memtuned::attach {
namespace {

std::string Identity() {
  return absl::StrCat("you are uid ", geteuid(), ", gid ", getegid());
}

std::string OwnerAndMode(const struct stat& file) {
  return absl::StrFormat("belongs to uid %u, gid %u with mode %04o",
                         file.st_uid, file.st_gid, file.st_mode & 07777u);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Outcome Denied(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) == 0) {
    return {MEMTUNED_PERMISSION_DENIED,
            absl::StrCat("permission denied on socket ", path, ": ", Identity(),
                         "; it ", OwnerAndMode(file))};
  }
  std::string folder = FolderOf(path);
  while (stat(folder.c_str(), &file) != 0 && folder != "/" && folder != ".") {
    folder = FolderOf(folder);
  }
  return {
      MEMTUNED_PERMISSION_DENIED,
      absl::StrCat("permission denied on the way to socket ", path, ": ",
                   Identity(), "; folder ", folder, " ", OwnerAndMode(file))};
}

Outcome ConnectFailed(const std::string& path, int error) {
  struct stat file;
  switch (error) {
    case EACCES:
    case EPERM:
      return Denied(path);
    case ENOENT:
    case ENOTDIR:
      return {MEMTUNED_UNAVAILABLE,
              absl::StrCat("socket ", path, " does not exist: is memtuned ",
                           "running, and has it a pool of that name?")};
    case EPROTOTYPE:
      return {MEMTUNED_BAD_REPLY,
              absl::StrCat(path, " is not a pool's attach socket: it is a ",
                           "socket of another type")};
    case ECONNREFUSED:
      if (stat(path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode)) {
        return {MEMTUNED_INVALID_ARGUMENT,
                absl::StrCat(path, " is not a socket")};
      }
      return {MEMTUNED_UNAVAILABLE,
              absl::StrCat("nobody listens on socket ", path,
                           ": memtuned has stopped")};
    default:
      return {MEMTUNED_UNAVAILABLE,
              absl::StrCat("connect to ", path, ": ", std::strerror(error))};
  }
}

}  // namespace

Outcome Connect(const std::string& path, const Deadline& deadline,
                FileDescriptor* connection) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return {
        MEMTUNED_INVALID_ARGUMENT,
        absl::StrCat("socket path has ", path.size(), " bytes; allowed 1 to ",
                     sizeof(address.sun_path) - 1, ": \"", path, "\"")};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  FileDescriptor fd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) {
    return {MEMTUNED_NO_RESOURCES,
            absl::StrCat("socket: ", std::strerror(errno))};
  }
  while (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                 sizeof(address)) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    // The daemon's queue is full, which no poll() reports.
    if (error != EAGAIN) return ConnectFailed(path, error);
    if (deadline.passed()) {
      return {MEMTUNED_DEADLINE_EXCEEDED,
              absl::StrCat("the queue of socket ", path, " was full for ",
                           deadline.total().count(), " ms")};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  *connection = std::move(fd);
  return {};
}

}  // namespace memtuned::attach
