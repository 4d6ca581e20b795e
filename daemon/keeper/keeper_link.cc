// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper/keeper_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/keeper/keeper.h"
#include "daemon/keeper/keeper_message.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

constexpr timeval kPatience{2, 0};
constexpr int kBacklog = 16;
constexpr int kEndTries = 500;
constexpr useconds_t kEndPauseUs = 2000;

absl::Status Errno(const std::string& what) {
  return absl::ErrnoToStatus(errno, what);
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("keeper socket path \"", path, "\" has ", path.size(),
                     " bytes; allowed 1 to ", sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool IsThere(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

FileDescriptor NewSocket() {
  return FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

struct Listener {
  FileDescriptor socket, file;  // above those of a keeper
};

FileDescriptor Above(int fd) {
  FileDescriptor below(fd);
  return FileDescriptor(fcntl(fd, F_DUPFD_CLOEXEC, kKeeperFile + 1));
}

absl::StatusOr<Listener> Listen(const std::string& path) {
  auto address = AddressOf(path);
  if (!address.ok()) return address.status();
  Listener listener;
  listener.socket = Above(NewSocket().Release());
  if (listener.socket.get() < 0) return Errno("socket");
  // The folder is ours (locked by the daemon). A keeper that still listens
  // there, and was not understood, ends once its socket is gone.
  unlink(path.c_str());
  if (bind(listener.socket.get(), reinterpret_cast<sockaddr*>(&*address),
           sizeof(*address)) != 0 ||
      chmod(path.c_str(), 0600) != 0 ||
      listen(listener.socket.get(), kBacklog) != 0) {
    return Errno(path);
  }
  listener.file = Above(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (listener.file.get() < 0) return Errno(path);
  return listener;
}

// A child with nothing of this process but its listener and the environment:
// no terminal, no signal mask, no standard streams that somebody waits on.
absl::StatusOr<pid_t> Run(const std::string& program, const std::string& path,
                          const Listener& listener) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, listener.socket.get(),
                                   kKeeperListener);
  posix_spawn_file_actions_adddup2(&files, listener.file.get(), kKeeperFile);
  for (int fd = 0; fd < kKeeperListener; ++fd) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  char name[] = "memtuned-keeper";
  std::string flag = kKeeperFlag, argument = path;
  char* argv[] = {name, flag.data(), argument.data(), nullptr};
  pid_t child = -1;
  const int error =
      posix_spawn(&child, program.c_str(), &files, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return absl::ErrnoToStatus(error, program);
  return child;
}

}  // namespace

KeeperLink::KeeperLink(std::string path, std::string program)
    : path_(std::move(path)), program_(std::move(program)) {}

KeeperLink::~KeeperLink() {
  const bool ends = kept_.empty() && !let_go_ && !Lost();
  socket_.Reset();
  for (int i = 0; i < kEndTries && ends && IsThere(path_); ++i) {
    usleep(kEndPauseUs);
  }
  Collect();
}

void KeeperLink::Collect() {
  std::erase_if(children_, [](pid_t child) {
    return waitpid(child, nullptr, WNOHANG) != 0;
  });
}

absl::Status KeeperLink::Connect() {
  auto address = AddressOf(path_);
  if (!address.ok()) return address.status();
  socket_ = NewSocket();
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience,
             sizeof(kPatience));
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience,
             sizeof(kPatience));
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&*address),
              sizeof(*address)) != 0 ||
      getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    absl::Status failed = Errno(path_);
    socket_.Reset();
    return failed;
  }
  if (peer.uid != geteuid()) {
    socket_.Reset();
    return absl::PermissionDeniedError(
        absl::StrCat(path_, " is uid ", peer.uid, "'s; allowed: ", geteuid()));
  }
  return absl::OkStatus();
}

absl::Status KeeperLink::Spawn() {
  auto listener = Listen(path_);
  if (!listener.ok()) return listener.status();
  // Connected before the keeper looks: it ends when it finds nobody.
  if (absl::Status s = Connect(); !s.ok()) return s;
  auto child = Run(program_, path_, *listener);
  if (!child.ok()) {
    socket_.Reset();
    return child.status();
  }
  children_.push_back(*child);
  return absl::OkStatus();
}

std::vector<KeptFds> KeeperLink::TakeAll() {
  std::vector<KeptFds> groups;
  if (!Connect().ok()) return groups;  // none is there
  bool ended = false;
  std::string error = "it does not read";
  bool more = SendKeeperMessage(socket_.get(), KeeperVerb::kTake, FdKey{});
  GroupReader reader;
  while (more) {
    KeeperMessage message;
    ReceivedMessage received =
        ReceiveWithFds(socket_.get(), &message, sizeof(message), 0);
    ended = received.bytes == 0;
    error = received.bytes < 0  ? std::strerror(errno)
            : ended             ? "it ended"
            : received.complete ? "its message is none of this protocol"
                                : "not every descriptor could be received: "
                                  "raise the limit of open files";
    auto part = reader.Read(message, std::move(received));
    if (part && part->verb == KeeperVerb::kEnd) return groups;
    more = part && part->verb == KeeperVerb::kGroup;
    if (more && part->complete) groups.push_back(std::move(part->group));
  }
  // One that was just ending, as it had nothing, is none.
  LogEvent(ended && groups.empty() ? LogLevel::kDebug : LogLevel::kError,
           "keeper-not-understood",
           {{"socket", path_},
            {"error", error},
            {"groups", absl::StrCat(groups.size())}});
  socket_.Reset();
  return groups;
}

void KeeperLink::Replace() {
  socket_.Reset();
  if (kept_.empty()) return;
  absl::Status status = Spawn();
  for (auto it = kept_.begin(); it != kept_.end() && status.ok(); ++it) {
    if (!SendKeeperMessage(socket_.get(), KeeperVerb::kStore, it->first,
                           it->second)) {
      status = Errno("cannot tell the new keeper");
    }
  }
  for (const std::string& pool : released_) {
    if (status.ok()) {
      SendKeeperMessage(socket_.get(), KeeperVerb::kRelease, {pool, 0});
    }
  }
  if (!status.ok() && !failed_) {
    LogEvent(LogLevel::kError, "keeper-failed",
             {{"error", std::string(status.message())},
              {"note",
               "without it a pool's processes alone outlive this "
               "daemon with it"}});
  }
  if (!status.ok()) socket_.Reset();
  failed_ = !status.ok();
}

bool KeeperLink::Lost() const {
  if (socket_.get() < 0) return true;
  pollfd look{socket_.get(), POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0;
}

template <typename Tell>
void KeeperLink::With(Tell tell) {
  if (Lost() || !tell(socket_.get())) Replace();
}

void KeeperLink::Store(const FdKey& key, std::span<const int> fds) {
  kept_[key].assign(fds.begin(), fds.end());
  if (key.client == 0) released_.erase(key.pool);
  With([&](int socket) {
    return SendKeeperMessage(socket, KeeperVerb::kStore, key, fds);
  });
}

void KeeperLink::Forget(const FdKey& key) {
  std::erase_if(kept_, [&key](const auto& entry) {
    return entry.first == key ||
           (key.client == 0 && entry.first.pool == key.pool);
  });
  if (key.client == 0) released_.erase(key.pool);
  With([&key](int socket) {
    return SendKeeperMessage(socket, KeeperVerb::kForget, key);
  });
}

void KeeperLink::Release(const std::string& pool) {
  released_.insert(pool);
  With([&pool](int socket) {
    return SendKeeperMessage(socket, KeeperVerb::kRelease, {pool, 0});
  });
}

void KeeperLink::LetGo(const std::string& pool) {
  std::erase_if(
      kept_, [&pool](const auto& entry) { return entry.first.pool == pool; });
  released_.erase(pool);
  let_go_ = true;
}

void KeeperLink::Tend() {
  Collect();
  if (Lost() && !kept_.empty()) {
    if (!failed_) LogEvent(LogLevel::kWarning, "keeper-ended", {});
    Replace();
  }
}

}  // namespace memtuned
