// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/attach_server.h"

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
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attach_message.h"
#include "core/base/thread_state.h"
#include "core/slot_table.h"
#include "daemon/keeper/fd_message.h"
#include "daemon/log.h"
#include "daemon/pool/process_info.h"

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

// Of the process that connected; by its number where the kernel (before 6.5)
// cannot tell otherwise.
FileDescriptor PeerPidfd(int connection, pid_t pid) {
#ifndef SO_PEERPIDFD
  constexpr int SO_PEERPIDFD = 77;
#endif
  int pidfd = -1;
  socklen_t length = sizeof(pidfd);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) != 0) {
    pidfd = errno == ENOPROTOOPT
                ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0))
                : -1;
  }
  return FileDescriptor(pidfd);
}

}  // namespace

AttachServer::AttachServer(Segment* segment, FdStore* store, Reaper* reaper,
                           AttachServerOptions options)
    : segment_(segment),
      store_(store),
      reaper_(reaper),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<AttachServer>> AttachServer::Start(
    Segment* segment, FdStore* store, Reaper* reaper,
    AttachServerOptions options) {
  std::vector<ProcessWatch> attached = std::exchange(options.attached, {});
  std::unique_ptr<AttachServer> server(
      new AttachServer(segment, store, reaper, std::move(options)));
  if (absl::Status s = server->Listen(); !s.ok()) return s;
  for (ProcessWatch& process : attached) {
    Client client;
    client.process = std::move(process);
    server->clients_.push_back(std::move(client));
  }
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

absl::Status AttachServer::Listen() {
  const std::string& path = options_.path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attach socket path \"", path, "\" has ", path.size(),
                     " bytes; allowed 1 to ", sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  FileDescriptor listener(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  wake_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (listener.get() < 0 || wake_.get() < 0) return Unavailable(path, "socket");
  // The runtime folder is ours (locked by the daemon): a file here is stale.
  unlink(path.c_str());
  // Never reachable with wider permissions than asked for.
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
           sizeof(address)) != 0) {
    return Unavailable(path, "bind");
  }
  listener_ = std::move(listener);  // the file is ours to remove
  if (chmod(path.c_str(), static_cast<mode_t>(options_.mode)) != 0) {
    return Unavailable(path, "chmod");
  }
  if (listen(listener_.get(), 128) != 0) return Unavailable(path, "listen");
  return absl::OkStatus();
}

AttachServer::~AttachServer() { Stop(); }

void AttachServer::Stop() {
  stopping_.store(true);
  const uint64_t one = 1;
  if (thread_.joinable()) {
    if (write(wake_.get(), &one, sizeof(one)) < 0) {
      LogEvent(LogLevel::kError, "attach-wake-failed", {});
    }
    thread_.join();
  }
  if (listener_.get() >= 0) unlink(options_.path.c_str());
  listener_.Reset();
}

void AttachServer::Run() {
  pthread_setname_np(pthread_self(), "attach");
  while (!stopping_.load()) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0},
                                  {listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) {
      polled.push_back({client.process.connection.get(), POLLIN, 0});
      polled.push_back({client.process.pidfd.get(), POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), 1000) < 0 && errno != EINTR) break;
    const size_t polled_clients = clients_.size();
    for (size_t i = 0; i < polled_clients; ++i) {
      Look(clients_[i], polled[2 + 2 * i], polled[3 + 2 * i]);
    }
    std::erase_if(clients_, [](const Client& c) { return c.closed; });
    if (polled[1].revents != 0) Accept();
  }
}

void AttachServer::Look(Client& client, const pollfd& connection,
                        const pollfd& pidfd) {
  const bool late = client.process.owner == 0 &&
                    env::NowNs() - client.accepted_ns > kRequestDeadlineNs;
  if (pidfd.revents != 0 || late) {
    Close(client);
  } else if (connection.revents != 0) {
    OnReadable(client);
  } else if (connection.fd < 0) {
    LookWithoutConnection(client);
  }
}

void AttachServer::LookWithoutConnection(Client& client) {
  if (ProcessLeft(*segment_, client.process.owner)) {
    Close(client);
  } else if (client.process.connection.get() >= 0) {
    LogEvent(LogLevel::kWarning, "connection-closed",
             {{"pool", options_.pool},
              {"pid", absl::StrCat(client.pid)},
              {"note", "the process uses the pool still"}});
    store_->StoreClient(options_.pool, client.process.owner, -1,
                        client.process.pidfd.get());
    client.process.connection.Reset();
  }
}

void AttachServer::Accept() {
  for (;;) {
    FileDescriptor connection(accept4(listener_.get(), nullptr, nullptr,
                                      SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.get() < 0) return;
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (clients_.size() >= kMaxClients ||
        getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) !=
            0) {
      continue;
    }
    Client client;
    client.pid = static_cast<uint32_t>(peer.pid);
    client.accepted_ns = env::NowNs();
    client.process.pidfd = PeerPidfd(connection.get(), peer.pid);
    client.process.connection = std::move(connection);
    clients_.push_back(std::move(client));
  }
}

void AttachServer::OnReadable(Client& client) {
  // One byte more than a request: a longer one is noticed.
  char buffer[sizeof(AttachRequest) + 1];
  const ssize_t got =
      recv(client.process.connection.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (client.process.owner != 0) {
    LookWithoutConnection(client);  // it ended, or is not worth listening to
  } else if (got <= 0 || !Attach(client, buffer, static_cast<size_t>(got))) {
    Close(client);
  }
}

bool AttachServer::Attach(Client& client, const void* data, size_t bytes) {
  AttachRequest request;
  const auto refuse = [&](AttachStatus status, const std::string& message) {
    const AttachReply reply = Refusal(status, message);
    SendWithFds(client.process.connection.get(), &reply, sizeof(reply), {});
    LogEvent(LogLevel::kWarning, "attach-refused",
             {{"pool", options_.pool},
              {"pid", absl::StrCat(client.pid)},
              {"why", message}});
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
  if (getsockopt(client.process.connection.get(), SOL_SOCKET, SO_PEERCRED,
                 &peer, &length) != 0 ||
      client.process.pidfd.get() < 0) {
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
  client.process.owner = *owner;
  store_->StoreClient(options_.pool, *owner, client.process.connection.get(),
                      client.process.pidfd.get());
  AttachReply reply;
  reply.owner = *owner;
  reply.layout_version = kLayoutVersion;
  reply.abi_hash = AbiHash();
  reply.nr_frame_fds = static_cast<uint32_t>(segment_->frame_fds().size());
  LogEvent(LogLevel::kDebug, "attached",
           {{"pool", options_.pool},
            {"pid", absl::StrCat(client.pid)},
            {"uid", absl::StrCat(peer.uid)}});
  return SendDescriptors(client, reply);
}

bool AttachServer::SendDescriptors(Client& client, const AttachReply& reply) {
  std::vector<int> fds = {segment_->metadata_fd()};
  fds.insert(fds.end(), segment_->frame_fds().begin(),
             segment_->frame_fds().end());
  std::span<const int> left = fds;
  const void* data = &reply;
  size_t bytes = sizeof(reply);
  const char more = 0;
  while (!left.empty()) {
    const auto now =
        left.first(std::min(left.size(), static_cast<size_t>(kFdsPerMessage)));
    if (!SendWithFds(client.process.connection.get(), data, bytes, now)) {
      return false;
    }
    left = left.subspan(now.size());
    data = &more;
    bytes = sizeof(more);
  }
  return true;
}

void AttachServer::Close(Client& client) {
  client.closed = true;
  if (client.process.owner != 0) reaper_->Reap(std::move(client.process));
}

}  // namespace memtuned
