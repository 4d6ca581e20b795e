// SPDX-License-Identifier: Apache-2.0
// Implementation of target.h.
#include "client/ctl/target.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace memtuned::ctl {
namespace {

std::string UserName(uid_t uid) {
  const passwd* entry = getpwuid(uid);
  const std::string number = std::to_string(uid);
  return entry == nullptr ? number : number + "(" + entry->pw_name + ")";
}

std::string GroupName(gid_t gid) {
  const group* entry = getgrgid(gid);
  const std::string number = std::to_string(gid);
  return entry == nullptr ? number : number + "(" + entry->gr_name + ")";
}

// "uid 1000(ann), groups 1000(ann) 27(sudo)"
std::string WhoAmI() {
  std::vector<gid_t> groups(static_cast<size_t>(getgroups(0, nullptr)) + 1);
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(count > 0 ? static_cast<size_t>(count) : 0);
  std::string text =
      "uid " + UserName(geteuid()) + ", groups " + GroupName(getegid());
  for (const gid_t gid : groups) {
    if (gid != getegid()) text += " " + GroupName(gid);
  }
  return text;
}

std::string ModeText(mode_t mode) {
  std::array<char, 8> text;
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777u);
  return text.data();
}

std::string StartHint(const Target& target) {
  return "start it with 'memtuned --listen " + target.Address() +
         "', or name another socket with --target or $MEMTUNED_TARGET";
}

// The innermost folder on the way to the socket that exists and cannot be
// searched, or "".
std::string ClosedFolder(const std::string& path) {
  std::string closed;
  for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string folder = path.substr(0, slash);
    struct stat status;
    if (stat(folder.c_str(), &status) == 0 &&
        faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) != 0) {
      closed = folder;
    }
  }
  return closed;
}

std::string OwnerText(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) return "cannot be looked at";
  return "belongs to uid " + UserName(status.st_uid) + ", group " +
         GroupName(status.st_gid) + ", mode " + ModeText(status.st_mode);
}

absl::Status Denied(const Target& target) {
  const std::string folder = ClosedFolder(target.path);
  const std::string& closed = folder.empty() ? target.path : folder;
  return absl::PermissionDeniedError(
      "permission denied on socket " + target.path + ": you are " + WhoAmI() +
      "; " + (folder.empty() ? "the socket " : "the folder " + folder + " ") +
      OwnerText(closed.c_str()));
}

absl::Status Missing(const Target& target) {
  return absl::UnavailableError("no daemon at " + target.Address() +
                                ": the socket does not exist (" +
                                StartHint(target) + ")");
}

absl::StatusOr<Target> ParseTcp(const std::string& address) {
  std::string_view rest = address;
  constexpr std::string_view kDns = "dns:///";
  if (rest.substr(0, kDns.size()) == kDns) rest.remove_prefix(kDns.size());
  const size_t colon = rest.rfind(':');
  std::string_view host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]/ ") != std::string_view::npos) {
    host = {};
  }
  int port = 0;
  if (colon != std::string_view::npos) {
    const char* end = rest.data() + rest.size();
    const auto [last, error] =
        std::from_chars(rest.data() + colon + 1, end, port);
    if (error != std::errc() || last != end) port = 0;
  }
  if (host.empty() || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(
        "target is '" + address +
        "'; allowed unix:/PATH, /PATH, HOST:PORT, [IPV6]:PORT or "
        "dns:///HOST:PORT");
  }
  return Target{"", std::string(host), port};
}

}  // namespace

std::string Target::Address() const {
  if (!is_tcp()) return "unix:" + path;
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

absl::StatusOr<Target> ParseTarget(const std::string& text) {
  std::string address = text;
  if (address.empty()) {
    const char* environment = std::getenv("MEMTUNED_TARGET");
    address = environment != nullptr && *environment != '\0' ? environment
                                                             : kDefaultTarget;
  }
  std::string path = address;
  if (path.rfind("unix:", 0) == 0) {
    path = path.substr(5);
    if (path.rfind("//", 0) == 0) path = path.substr(2);
    if (path.empty()) {
      return absl::InvalidArgumentError("target is '" + address +
                                        "'; a path must follow unix:");
    }
  } else if (path.rfind('/', 0) != 0) {
    return ParseTcp(address);
  }
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(
        "target is '" + address + "'; its path has " +
        std::to_string(path.size()) + " bytes, a socket's at most " +
        std::to_string(sizeof(sockaddr_un::sun_path) - 1));
  }
  return Target{path, "", 0};
}

absl::Status CheckSocket(const Target& target) {
  if (target.is_tcp()) return absl::OkStatus();
  struct stat status;
  if (stat(target.path.c_str(), &status) != 0) {
    if (errno == EACCES) return Denied(target);
    if (errno == ENOENT || errno == ENOTDIR) return Missing(target);
    return absl::UnavailableError("no daemon at " + target.Address() + ": " +
                                  std::strerror(errno));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return absl::UnavailableError("no daemon at " + target.Address() +
                                  ": that is no socket");
  }
  if (faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0 &&
      errno == EACCES) {
    return Denied(target);
  }
  return absl::OkStatus();
}

absl::Status ExplainFailure(const Target& target, const absl::Status& failure) {
  if (target.is_tcp()) {
    // TLS failures look like refused connections, but for their text.
    return absl::UnavailableError("no answer from " + target.Address() + ": " +
                                  std::string(failure.message()));
  }
  absl::Status checked = CheckSocket(target);
  if (!checked.ok()) return checked;

  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, target.path.c_str(),
               sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return failure;
  const int result =
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const int error = result == 0 ? 0 : errno;
  close(fd);
  switch (error) {
    case ECONNREFUSED:
      return absl::UnavailableError(
          "no daemon at " + target.Address() +
          ": the socket is there but nobody listens (left by a daemon that is "
          "gone; " +
          StartHint(target) + ")");
    case EACCES:
    case EPERM:
      return Denied(target);
    case EAGAIN:
      return absl::UnavailableError("the daemon at " + target.Address() +
                                    " is too busy to take a connection");
    default:
      return absl::UnavailableError("no answer from " + target.Address() +
                                    ": " + std::string(failure.message()));
  }
}

}  // namespace memtuned::ctl
