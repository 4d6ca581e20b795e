// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/attach_server.h"

#include <fcntl.h>
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
#include "absl/strings/str_format.h"
#include "core/base/thread_state.h"
#include "core/slot_table.h"
#include "daemon/keeper/fd_message.h"
#include "daemon/log.h"
#include "daemon/pool/process_info.h"
#include "daemon/pool/socket_reach.h"

namespace memtuned {
namespace {

constexpr uint64_t kRequestDeadlineNs = 5000000000;
constexpr size_t kMaxClients = 4096;
// Of one user, so that none keeps the others out.
constexpr int kMaxWaitingOfUser = 1024;
constexpr int kMaxObserversOfUser = 256;
constexpr uint64_t kLogWindowNs = 10000000000;
constexpr int kLogLines = 10;  // about refusals, in a window

constexpr const char* kRefusalReasons[kNumAttachStatuses] = {
    "", "bad_request", "layout_differs", "denied", "full", "shutting_down"};

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

AttachReply NewReply(AttachStatus status) {
  AttachReply reply;
  reply.status = status;
  reply.layout_version = kLayoutVersion;
  reply.abi_hash = AbiHash();
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
      options_(std::move(options)),
      users_(options_.users) {}

absl::StatusOr<std::unique_ptr<AttachServer>> AttachServer::Start(
    Segment* segment, FdStore* store, Reaper* reaper,
    AttachServerOptions options) {
  std::vector<ProcessWatch> attached = std::exchange(options.attached, {});
  std::unique_ptr<AttachServer> server(
      new AttachServer(segment, store, reaper, std::move(options)));
  if (absl::Status s = server->Listen(); !s.ok()) return s;
  server->SetUsers(server->options_.users);
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

void AttachServer::SetUsers(const PoolUsers& users) {
  {
    MutexLock lock(mutex_);
    users_ = users;
  }
  struct stat file {};
  if (stat(options_.path.c_str(), &file) != 0) return;
  const std::string kept_out = KeptOutBySocket(users, file);
  if (kept_out.empty()) return;
  LogEvent(LogLevel::kWarning, "attach-list-out-of-reach",
           {{"pool", options_.pool},
            {"socket", options_.path},
            {"mode", absl::StrFormat("%04o", file.st_mode & 0777u)},
            {"gid", absl::StrCat(file.st_gid)},
            {"who", kept_out},
            {"note",
             "they are named but cannot connect, unless they are in "
             "the socket's group: set the pool's mode"}});
}

std::map<std::string, uint64_t> AttachServer::Refusals() const {
  std::map<std::string, uint64_t> counts;
  for (size_t i = 1; i < refusals_.size(); ++i) {
    counts[kRefusalReasons[i]] = refusals_[i].load();
  }
  return counts;
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
  const bool late =
      client.Waits() && env::NowNs() - client.accepted_ns > kRequestDeadlineNs;
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
              {"pid", absl::StrCat(client.peer.pid)},
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
    auto peer = PeerOf(connection.get());
    if (!peer.ok()) continue;
    Client client;
    client.peer = *std::move(peer);
    if (!HasRoomFor(client.peer)) {
      NoteRefusal(client, AttachStatus::kFull, "too many connections");
      continue;
    }
    client.accepted_ns = env::NowNs();
    client.process.pidfd = PeerPidfd(connection.get(), client.peer.pid);
    client.process.connection = std::move(connection);
    clients_.push_back(std::move(client));
  }
}

bool AttachServer::HasRoomFor(const UnixPeer& peer) const {
  const auto waiting = std::count_if(
      clients_.begin(), clients_.end(), [&peer](const Client& client) {
        return client.Waits() && client.peer.uid == peer.uid;
      });
  return clients_.size() < kMaxClients && waiting < kMaxWaitingOfUser;
}

void AttachServer::OnReadable(Client& client) {
  // One byte more than a request: a longer one is noticed.
  char buffer[sizeof(AttachRequest) + 1];
  const ssize_t got =
      recv(client.process.connection.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (client.process.owner != 0) {
    LookWithoutConnection(client);  // it ended, or is not worth listening to
  } else if (got <= 0 || client.observes ||
             !Answer(client, buffer, static_cast<size_t>(got))) {
    Close(client);
  }
}

bool AttachServer::Answer(Client& client, const void* data, size_t bytes) {
  AttachRequest request;
  if (bytes == sizeof(request)) std::memcpy(&request, data, bytes);
  if (bytes != sizeof(request) || request.magic != kAttachMagic ||
      request.protocol != kAttachProtocol ||
      (request.flags & ~kAttachToRead) != 0) {
    return Refuse(
        client, AttachStatus::kBadRequest,
        absl::StrCat("not an attach request of protocol ", kAttachProtocol));
  }
  if (request.layout_version != kLayoutVersion ||
      request.abi_hash != AbiHash()) {
    return Refuse(
        client, AttachStatus::kLayoutDiffers,
        absl::StrCat("the library has layout ", request.layout_version, " abi ",
                     absl::Hex(request.abi_hash), ", the daemon has layout ",
                     kLayoutVersion, " abi ", absl::Hex(AbiHash()),
                     ": install the same version"));
  }
  PoolUse use;
  {
    MutexLock lock(mutex_);
    use = users_.UseOf(client.peer, geteuid());
  }
  const bool reads = (request.flags & kAttachToRead) != 0;
  if (use == PoolUse::kAttach || (reads && use == PoolUse::kObserve)) {
    return reads ? Observe(client) : Attach(client);
  }
  return Refuse(
      client, AttachStatus::kDenied,
      absl::StrCat("uid ", client.peer.uid, " may not ",
                   reads ? "observe" : "attach to", " pool ", options_.pool,
                   ": its list \"attach\"", reads ? " or \"observe\"" : "",
                   " has to name that user or a group of it",
                   use == PoolUse::kObserve
                       ? "; attaching to read only is allowed"
                       : ""));
}

bool AttachServer::Attach(Client& client) {
  if (client.process.pidfd.get() < 0) {
    return Refuse(client, AttachStatus::kDenied,
                  "the process cannot be seen from the daemon's PID namespace");
  }
  ProcessIdentity identity;
  identity.pid = static_cast<uint32_t>(client.peer.pid);
  identity.uid = client.peer.uid;
  identity.gid = client.peer.gid;
  identity.start_time_ticks = StartTimeOf(identity.pid);
  identity.attached_unix_ns = UnixNs();
  const auto owner = TakeProcessSlot(*segment_, identity);
  if (!owner.ok()) {
    return Refuse(client, AttachStatus::kFull,
                  std::string(owner.status().message()));
  }
  client.process.owner = *owner;
  store_->StoreClient(options_.pool, *owner, client.process.connection.get(),
                      client.process.pidfd.get());
  LogEvent(LogLevel::kDebug, "attached",
           {{"pool", options_.pool},
            {"pid", absl::StrCat(client.peer.pid)},
            {"uid", absl::StrCat(client.peer.uid)}});
  std::vector<int> fds = {segment_->metadata_fd()};
  fds.insert(fds.end(), segment_->frame_fds().begin(),
             segment_->frame_fds().end());
  return SendDescriptors(client, *owner, fds);
}

bool AttachServer::Observe(Client& client) {
  const auto observers = std::count_if(
      clients_.begin(), clients_.end(), [&client](const Client& other) {
        return other.observes && other.peer.uid == client.peer.uid;
      });
  if (observers >= kMaxObserversOfUser) {
    return Refuse(
        client, AttachStatus::kFull,
        absl::StrCat("uid ", client.peer.uid, " observes pool ", options_.pool,
                     " ", observers, " times already, which is the most"));
  }
  if (absl::Status opened = OpenViews(); !opened.ok()) {
    return Refuse(client, AttachStatus::kDenied, std::string(opened.message()));
  }
  client.observes = true;
  client.process.pidfd.Reset();  // only its connection is looked at
  observers_.fetch_add(1);
  LogEvent(LogLevel::kDebug, "observed",
           {{"pool", options_.pool},
            {"pid", absl::StrCat(client.peer.pid)},
            {"uid", absl::StrCat(client.peer.uid)}});
  std::vector<int> fds;
  for (const FileDescriptor& view : views_) fds.push_back(view.get());
  return SendDescriptors(client, 0, fds);
}

absl::Status AttachServer::OpenViews() {
  std::vector<int> files = {segment_->metadata_fd()};
  files.insert(files.end(), segment_->frame_fds().begin(),
               segment_->frame_fds().end());
  while (views_.size() < files.size()) {
    const std::string path =
        absl::StrCat("/proc/self/fd/", files[views_.size()]);
    FileDescriptor view(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (view.get() < 0) {
      return absl::UnavailableError(
          absl::StrCat("the daemon cannot open the pool for reading: ", path,
                       ": ", std::strerror(errno)));
    }
    views_.push_back(std::move(view));
  }
  return absl::OkStatus();
}

bool AttachServer::Refuse(const Client& client, AttachStatus status,
                          const std::string& message) {
  AttachReply reply = NewReply(status);
  message.copy(reply.message.data(), reply.message.size() - 1);
  NoteRefusal(client, status, message);
  SendWithFds(client.process.connection.get(), &reply, sizeof(reply), {});
  return false;
}

void AttachServer::NoteRefusal(const Client& client, AttachStatus status,
                               const std::string& why) {
  refusals_[static_cast<size_t>(status)].fetch_add(1);
  const uint64_t now = env::NowNs();
  if (now - logged_since_ns_ >= kLogWindowNs) {
    logged_since_ns_ = now;
    logged_ = 0;
  }
  if (logged_ == kLogLines) {
    ++left_out_;
    return;
  }
  ++logged_;
  LogEvent(LogLevel::kWarning, "attach-refused",
           {{"pool", options_.pool},
            {"pid", absl::StrCat(client.peer.pid)},
            {"uid", absl::StrCat(client.peer.uid)},
            {"why", why},
            {"lines_left_out", absl::StrCat(std::exchange(left_out_, 0))}});
}

bool AttachServer::SendDescriptors(const Client& client, ProcessOwner owner,
                                   const std::vector<int>& fds) {
  AttachReply reply = NewReply(AttachStatus::kOk);
  reply.owner = owner;
  reply.nr_frame_fds = static_cast<uint32_t>(fds.size() - 1);
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
  if (client.observes) observers_.fetch_sub(1);
  if (client.process.owner != 0) reaper_->Reap(std::move(client.process));
}

}  // namespace memtuned
