// SPDX-License-Identifier: Apache-2.0
// One thread, one poll(); nothing here waits for a peer longer than 2 s.
#include "daemon/keeper/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "daemon/keeper/fd_message.h"
#include "daemon/keeper/pool_claim.h"

namespace memtuned {
namespace {

constexpr int kLookEveryMs = 1000;
constexpr timeval kSendTimeout{2, 0};

bool IsListening(int fd) {
  int type = 0, listening = 0;
  socklen_t length = sizeof(int);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
         type == SOCK_SEQPACKET &&
         getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 &&
         listening == 1;
}

}  // namespace

Keeper::Keeper(FileDescriptor listener, FileDescriptor file, std::string path)
    : listener_(std::move(listener)),
      file_(std::move(file)),
      path_(std::move(path)) {}

bool Keeper::Reachable() const {
  struct stat file {};
  return fstat(file_.get(), &file) == 0 && file.st_nlink > 0;
}

bool Keeper::Done() const {
  return connections_.empty() && (groups_.empty() || !Reachable());
}

void Keeper::Run() {
  std::vector<pollfd> polled;
  do {
    Wait(polled);
    const size_t served = connections_.size();
    for (size_t i = 0; i < served; ++i) {
      if (polled[1 + i].revents != 0 && !Serve(connections_[i])) {
        connections_[i].socket.Reset();
      }
    }
    std::erase_if(connections_,
                  [](const Connection& c) { return c.socket.get() < 0; });
    if (polled[0].revents != 0) Accept();
    DropReleased();
  } while (!Done());
  if (Reachable()) unlink(path_.c_str());
}

template <typename Visit>
void Keeper::VisitReleasedClients(Visit visit) {
  for (const auto& [key, fds] : groups_) {
    if (key.client == 0 || !released_.contains(key.pool)) continue;
    for (const FileDescriptor& fd : fds) visit(key, fd.get());
  }
}

void Keeper::Wait(std::vector<pollfd>& polled) {
  polled.assign(1, {listener_.get(), POLLIN, 0});
  for (const Connection& connection : connections_) {
    polled.push_back({connection.socket.get(), POLLIN, 0});
  }
  VisitReleasedClients([&polled](const FdKey&, int fd) {
    polled.push_back({fd, EndEvents(fd), 0});
  });
  // Without a daemon it looks now and then whether one could still come.
  poll(polled.data(), polled.size(), connections_.empty() ? kLookEveryMs : -1);
}

void Keeper::Accept() {
  FileDescriptor socket(
      accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (socket.get() < 0 || connections_.size() >= kMaxConnections ||
      getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      peer.uid != geteuid()) {
    return;
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout,
             sizeof(kSendTimeout));
  connections_.push_back({std::move(socket), GroupReader()});
}

// Connections are served in the order they were made, each until it is empty:
// what a daemon said before it died counts before the next one takes it.
bool Keeper::Serve(Connection& connection) {
  for (;;) {
    KeeperMessage message;
    ReceivedMessage received = ReceiveWithFds(connection.socket.get(), &message,
                                              sizeof(message), MSG_DONTWAIT);
    if (received.bytes < 0) return errno == EAGAIN;
    auto part = connection.reader.Read(message, std::move(received));
    if (!part) return false;
    if (part->complete &&
        !Do(part->verb, std::move(part->group), connection.socket.get())) {
      return false;
    }
  }
}

bool Keeper::Do(KeeperVerb verb, KeptFds group, int socket) {
  switch (verb) {
    case KeeperVerb::kStore:
      Store(std::move(group));
      return true;
    case KeeperVerb::kForget:
      Forget(group.key);
      return true;
    case KeeperVerb::kRelease:
      released_.insert(group.key.pool);
      return true;
    case KeeperVerb::kTake:
      return Hand(socket);
    case KeeperVerb::kGroup:
    case KeeperVerb::kEnd:
      break;
  }
  return false;
}

bool Keeper::Hand(int socket) {
  std::vector<int> numbers;
  for (const auto& [key, fds] : groups_) {
    numbers.clear();
    for (const FileDescriptor& fd : fds) numbers.push_back(fd.get());
    if (!SendKeeperMessage(socket, KeeperVerb::kGroup, key, numbers)) {
      return false;
    }
  }
  return SendKeeperMessage(socket, KeeperVerb::kEnd, {});
}

void Keeper::Store(KeptFds group) {
  auto& kept = groups_[group.key];
  nr_fds_ += group.fds.size() - kept.size();
  kept = std::move(group.fds);
  if (group.key.client == 0) {
    ClaimPool(kept[0].get());
    released_.erase(group.key.pool);  // whoever stores a pool serves it
  }
  if (nr_fds_ > kMaxFds) Forget(group.key);
}

void Keeper::Forget(const FdKey& key) {
  std::erase_if(groups_, [&](const auto& entry) {
    const bool goes =
        entry.first == key || (key.client == 0 && entry.first.pool == key.pool);
    if (goes) nr_fds_ -= entry.second.size();
    return goes;
  });
  if (key.client == 0) released_.erase(key.pool);
}

void Keeper::DropReleased() {
  if (released_.empty()) return;
  std::set<FdKey> gone;
  VisitReleasedClients([&gone](const FdKey& key, int fd) {
    if (HasEnded(fd)) gone.insert(key);
  });
  for (const FdKey& key : gone) Forget(key);
  std::set<std::string> deserted = released_;
  VisitReleasedClients(
      [&deserted](const FdKey& key, int) { deserted.erase(key.pool); });
  for (const std::string& pool : deserted) Forget({pool, 0});
}

int RunKeeper(const std::string& path) {
  struct stat file {};
  if (!IsListening(kKeeperListener) || fstat(kKeeperFile, &file) != 0) {
    std::fprintf(stderr, "memtuned: %s is for memtuned's own use\n",
                 kKeeperFlag);
    return 2;
  }
  prctl(PR_SET_NAME, "memtuned-keeper");
  syscall(SYS_close_range, kKeeperFile + 1, ~0u, 0);
  fcntl(kKeeperListener, F_SETFL, O_NONBLOCK);
  Keeper(FileDescriptor(kKeeperListener), FileDescriptor(kKeeperFile), path)
      .Run();
  return 0;
}

}  // namespace memtuned
