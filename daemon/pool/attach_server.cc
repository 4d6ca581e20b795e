// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/attach_server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/attach_message.h"
#include "core/base/thread_state.h"
#include "core/reap.h"
#include "core/slot_table.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

constexpr uint64_t kRequestDeadlineNs = 5000000000;
constexpr size_t kMaxClients = 4096;

absl::Status Unavailable(const std::string& path, const char* what) {
  return absl::UnavailableError(absl::StrCat("attach socket ", path, ": ", what,
                                             ": ", std::strerror(errno)));
}

uint64_t UnixNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

AttachReply Refusal(AttachStatus status, const std::string& message) {
  AttachReply reply;
  reply.status = status;
  reply.layout_version = kLayoutVersion;
  reply.abi_hash = AbiHash();
  std::copy_n(message.begin(),
              std::min(message.size(), reply.message.size() - 1),
              reply.message.begin());
  return reply;
}

bool SendWithFds(int socket, const void* data, size_t bytes, const int* fds,
                 size_t nr_fds) {
  iovec io{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsPerMessage)] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  if (nr_fds > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * nr_fds);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * nr_fds);
    std::memcpy(CMSG_DATA(header), fds, sizeof(int) * nr_fds);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

}  // namespace

AttachServer::AttachServer(Segment* segment, std::string path, std::string pool)
    : segment_(segment), path_(std::move(path)), pool_(std::move(pool)) {}

absl::StatusOr<std::unique_ptr<AttachServer>> AttachServer::Start(
    Segment* segment, const std::string& path, int mode,
    const std::string& pool) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attach socket path \"", path, "\" has ", path.size(),
                     " bytes; allowed 1 to ", sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  std::unique_ptr<AttachServer> server(new AttachServer(segment, path, pool));
  server->listen_fd_ =
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  server->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (server->listen_fd_ < 0 || server->wake_fd_ < 0) {
    return Unavailable(path, "socket");
  }
  // The runtime folder is ours (locked by the daemon): a file here is stale.
  unlink(path.c_str());
  // Never reachable with wider permissions than asked for.
  if (bind(server->listen_fd_, reinterpret_cast<sockaddr*>(&address),
           sizeof(address)) != 0) {
    return Unavailable(path, "bind");
  }
  if (chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) {
    return Unavailable(path, "chmod");
  }
  if (listen(server->listen_fd_, 128) != 0) return Unavailable(path, "listen");
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

AttachServer::~AttachServer() {
  stopping_.store(true);
  const uint64_t one = 1;
  if (thread_.joinable()) {
    if (write(wake_fd_, &one, sizeof(one)) < 0) {
      LogEvent(LogLevel::kError, "attach-wake-failed", {});
    }
    thread_.join();
  }
  if (listen_fd_ >= 0) {
    close(listen_fd_);
    unlink(path_.c_str());
  }
  if (wake_fd_ >= 0) close(wake_fd_);
}

void AttachServer::Run() {
  pthread_setname_np(pthread_self(), "attach");
  TakeThreadSlot(*segment_, kDaemonProcess, &context_);
  while (!stopping_.load()) {
    std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0},
                                  {listen_fd_, POLLIN, 0}};
    for (const Client& client : clients_) {
      polled.push_back({client.socket, POLLIN, 0});
      polled.push_back({client.pidfd, POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), 1000) < 0 && errno != EINTR) break;
    const size_t polled_clients = clients_.size();
    for (size_t i = 0; i < polled_clients; ++i) {
      Client& client = clients_[i];
      const bool readable = polled[2 + 2 * i].revents != 0;
      const bool ended = polled[3 + 2 * i].revents != 0;
      const bool late = client.owner == 0 && client.socket >= 0 &&
                        env::NowNs() - client.accepted_ns > kRequestDeadlineNs;
      if (ended || late) {
        Close(client);
      } else if (readable) {
        OnReadable(client);
      }
    }
    std::erase_if(clients_, [](const Client& c) { return c.socket < 0; });
    if (polled[1].revents != 0) Accept();
  }
  for (Client& client : clients_) {
    close(client.socket);
    if (client.pidfd >= 0) close(client.pidfd);
  }
  clients_.clear();
  ReleaseThreadSlot(*segment_, context_);
}

void AttachServer::Accept() {
  for (;;) {
    const int fd =
        accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (clients_.size() >= kMaxClients ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
      close(fd);
      continue;
    }
    Client client;
    client.socket = fd;
    client.pid = static_cast<uint32_t>(peer.pid);
    client.accepted_ns = env::NowNs();
    client.pidfd = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
    clients_.push_back(client);
  }
}

void AttachServer::OnReadable(Client& client) {
  // One byte more than a request: a longer one is noticed.
  char buffer[sizeof(AttachRequest) + 1];
  const ssize_t got = recv(client.socket, buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || client.owner != 0 ||
      !Attach(client, buffer, static_cast<size_t>(got))) {
    Close(client);
  }
}

bool AttachServer::Attach(Client& client, const void* data, size_t bytes) {
  AttachRequest request;
  const auto refuse = [&](AttachStatus status, const std::string& message) {
    const AttachReply reply = Refusal(status, message);
    SendWithFds(client.socket, &reply, sizeof(reply), nullptr, 0);
    LogEvent(
        LogLevel::kWarning, "attach-refused",
        {{"pool", pool_}, {"pid", absl::StrCat(client.pid)}, {"why", message}});
    return false;
  };
  if (bytes == sizeof(request)) std::memcpy(&request, data, bytes);
  if (bytes != sizeof(request) || request.magic != kAttachMagic ||
      request.protocol != kAttachProtocol || request.flags != 0) {
    return refuse(
        AttachStatus::kBadRequest,
        absl::StrCat("not an attach request of protocol ", kAttachProtocol));
  }
  if (request.layout_version != kLayoutVersion ||
      request.abi_hash != AbiHash()) {
    return refuse(
        AttachStatus::kLayoutDiffers,
        absl::StrCat("the library has layout ", request.layout_version, " abi ",
                     absl::Hex(request.abi_hash), ", the daemon has layout ",
                     kLayoutVersion, " abi ", absl::Hex(AbiHash()),
                     ": install the same version"));
  }
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(client.socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      client.pidfd < 0) {
    return refuse(AttachStatus::kDenied,
                  "the process cannot be seen from the daemon's PID namespace");
  }
  ProcessIdentity identity;
  identity.pid = client.pid;
  identity.uid = peer.uid;
  identity.gid = peer.gid;
  identity.start_time_ticks = StartTimeOf(client.pid);
  identity.attached_unix_ns = UnixNs();
  const auto owner = TakeProcessSlot(*segment_, identity);
  if (!owner.ok()) {
    return refuse(AttachStatus::kFull, std::string(owner.status().message()));
  }
  client.owner = *owner;
  AttachReply reply;
  reply.owner = *owner;
  reply.layout_version = kLayoutVersion;
  reply.abi_hash = AbiHash();
  reply.nr_frame_fds = static_cast<uint32_t>(segment_->frame_fds().size());
  LogEvent(LogLevel::kDebug, "attached",
           {{"pool", pool_},
            {"pid", absl::StrCat(client.pid)},
            {"uid", absl::StrCat(peer.uid)}});
  return SendDescriptors(client, reply);
}

bool AttachServer::SendDescriptors(Client& client, const AttachReply& reply) {
  std::vector<int> fds = {segment_->metadata_fd()};
  fds.insert(fds.end(), segment_->frame_fds().begin(),
             segment_->frame_fds().end());
  size_t sent = 0;
  const void* data = &reply;
  size_t bytes = sizeof(reply);
  const char more = 0;
  while (sent < fds.size()) {
    const size_t now =
        std::min(fds.size() - sent, static_cast<size_t>(kFdsPerMessage));
    if (!SendWithFds(client.socket, data, bytes, &fds[sent], now)) return false;
    sent += now;
    data = &more;
    bytes = sizeof(more);
  }
  return true;
}

void AttachServer::Close(Client& client) {
  if (client.owner != 0) Reap(client);
  close(client.socket);
  if (client.pidfd >= 0) close(client.pidfd);
  client.socket = client.pidfd = -1;
}

void AttachServer::Reap(Client& client) {
  const ReapResult result = ReapProcess(*segment_, client.owner, context_);
  LogEvent(result.blocks == 0 ? LogLevel::kDebug : LogLevel::kInfo,
           "process-gone",
           {{"pool", pool_},
            {"pid", absl::StrCat(client.pid)},
            {"pages_given_back", absl::StrCat(result.pages)}});
  client.owner = 0;
}

}  // namespace memtuned
