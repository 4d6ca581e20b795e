// SPDX-License-Identifier: Apache-2.0
#include "tests/support/attach_test_server.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/attach_message.h"
#include "core/slot_table.h"

namespace memtuned::test {
namespace {

void Require(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

AttachReply Reply(AttachStatus status, const std::string& message) {
  AttachReply reply;
  reply.status = status;
  reply.layout_version = kLayoutVersion;
  reply.abi_hash = AbiHash();
  message.copy(reply.message.data(), reply.message.size() - 1);
  return reply;
}

SegmentConfig ConfigOf(const AttachTestServerOptions& options) {
  SegmentConfig config;
  config.name = options.name;
  config.nr_processes = options.nr_processes;
  config.first_sections = options.first_sections;
  config.tunables = DefaultTunables();
  Topology& topology = config.topology;
  topology.source = TopologySource::kSynthetic;
  for (int i = 0; i < options.nr_nodes; ++i) {
    TopologyNode node;
    node.os_index = i;
    node.memory_bytes =
        static_cast<int64_t>(options.pages_a_node * kPageSizeBytes);
    topology.nodes.push_back(node);
    config.nodes.push_back({i, options.pages_a_node});
    auto& row = topology.distances.emplace_back(options.nr_nodes, 20);
    row[static_cast<size_t>(i)] = 10;
  }
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    topology.nodes[0].cpus.push_back(cpu);
    topology.nodes[0].near_cpus.push_back(cpu);
  }
  return config;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string path = std::filesystem::temp_directory_path() / "memtuned.XXXXXX";
  Require(mkdtemp(path.data()) != nullptr, "mkdtemp");
  // Other users may look for the socket; its own mode says who may connect.
  Require(chmod(path.c_str(), 0755) == 0, "chmod");
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int ListenOn(const std::string& path, int type, int backlog) {
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  Require(fd >= 0, "socket");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  Require(path.size() < sizeof(address.sun_path), "path too long");
  path.copy(address.sun_path, path.size());
  Require(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
          "bind");
  Require(listen(fd, backlog) == 0, "listen");
  return fd;
}

bool SendWithFds(int connection, const void* bytes, size_t size,
                 const std::vector<int>& fds) {
  std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
  iovec data = {const_cast<void*>(bytes), size};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(part), fds.data(), sizeof(int) * fds.size());
  }
  return sendmsg(connection, &header, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(size);
}

ScriptedServer::ScriptedServer(std::function<void(int connection)> answer)
    : listener_(ListenOn(path(), SOCK_SEQPACKET)),
      thread_([this, answer = std::move(answer)] {
        for (;;) {
          const int connection =
              accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
          if (connection < 0) return;
          answer(connection);
          close(connection);
        }
      }) {}

ScriptedServer::~ScriptedServer() {
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

AttachTestServer::AttachTestServer(AttachTestServerOptions options) {
  auto segment = Segment::Create(ConfigOf(options));
  if (!segment.ok()) {
    std::fprintf(stderr, "%s\n", segment.status().ToString().c_str());
    std::abort();
  }
  segment_ = *std::move(segment);
  listener_ = ListenOn(path(), SOCK_SEQPACKET);
  wake_ = eventfd(0, EFD_CLOEXEC);
  Require(wake_ >= 0, "eventfd");
  thread_ = std::thread([this] { Serve(); });
}

AttachTestServer::~AttachTestServer() {
  const uint64_t one = 1;
  Require(write(wake_, &one, sizeof(one)) == sizeof(one), "wake");
  thread_.join();
  for (const Client& client : clients_) close(client.connection);
  close(listener_);
  close(wake_);
}

void AttachTestServer::Serve() {
  for (;;) {
    std::vector<pollfd> fds = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Client& c : clients_) fds.push_back({c.connection, POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return;
    for (size_t i = fds.size(); i-- > 2;) {
      if (fds[i].revents == 0) continue;
      const Client gone = clients_[i - 2];
      clients_.erase(clients_.begin() + static_cast<ptrdiff_t>(i - 2));
      GiveBack(gone.owner);
      ReleaseProcessSlot(*segment_, gone.owner);
      close(gone.connection);
    }
    if (fds[1].revents != 0) Accept();
  }
}

void AttachTestServer::Accept() {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0) return;
  AttachRequest request;
  ucred peer = {};
  socklen_t length = sizeof(peer);
  Require(getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0,
          "SO_PEERCRED");
  const ssize_t got = recv(connection, &request, sizeof(request), 0);
  AttachReply reply = Reply(AttachStatus::kOk, "");
  if (got != static_cast<ssize_t>(sizeof(request)) ||
      request.magic != kAttachMagic) {
    reply = Reply(AttachStatus::kBadRequest, "not an attach request");
  } else if (request.layout_version != kLayoutVersion ||
             request.abi_hash != AbiHash()) {
    reply = Reply(AttachStatus::kLayoutDiffers, "another layout");
  } else {
    auto owner = TakeProcessSlot(
        *segment_, {static_cast<uint32_t>(peer.pid), peer.uid, peer.gid, 0, 0});
    if (owner.ok()) {
      reply.owner = *owner;
    } else {
      reply = Reply(AttachStatus::kFull, std::string(owner.status().message()));
    }
  }
  if (reply.status != AttachStatus::kOk) {
    SendWithFds(connection, &reply, sizeof(reply), {});
    close(connection);
    return;
  }
  std::vector<int> fds = {segment_->metadata_fd()};
  fds.insert(fds.end(), segment_->frame_fds().begin(),
             segment_->frame_fds().end());
  reply.nr_frame_fds = static_cast<uint32_t>(fds.size() - 1);
  for (size_t sent = 0; sent < fds.size(); sent += kFdsPerMessage) {
    const size_t end = std::min<size_t>(fds.size(), sent + kFdsPerMessage);
    SendWithFds(connection, &reply, sent == 0 ? sizeof(reply) : 1,
                {fds.begin() + static_cast<ptrdiff_t>(sent),
                 fds.begin() + static_cast<ptrdiff_t>(end)});
  }
  clients_.push_back({connection, reply.owner});
}

void AttachTestServer::GiveBack(uint32_t owner) {
  const Mapping& m = segment_->mapping();
  for (uint32_t pfn = 0; pfn < m.nr_pages; ++pfn) {
    const PageWord word(LoadRelaxed(m.memmap[pfn].word));
    const bool held = word.kind() == PageKind::kAllocated ||
                      word.kind() == PageKind::kOffered;
    if (!held || word.ref() != owner) continue;
    Zone& zone = segment_->zone(m.ZoneOfSection(pfn >> kSectionShift));
    zone.Lock(kCreatorOwner);
    zone.GiveBlockLocked(Pfn{pfn}, word);
    zone.Unlock(uint64_t{1} << word.order());
  }
}

uint64_t AttachTestServer::AllocatedPages() const {
  const Mapping& m = segment_->mapping();
  uint64_t pages = 0;
  for (uint32_t pfn = 0; pfn < m.nr_pages; ++pfn) {
    const PageWord word(LoadRelaxed(m.memmap[pfn].word));
    if (word.kind() == PageKind::kAllocated ||
        word.kind() == PageKind::kOffered) {
      pages += uint64_t{1} << word.order();
    }
  }
  return pages;
}

int AttachTestServer::AttachedProcesses() const {
  const Mapping& m = segment_->mapping();
  int attached = 0;
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    const auto state = static_cast<SlotState>(Load(m.processes[i].state));
    attached += state != SlotState::kFree ? 1 : 0;
  }
  return attached;
}

int AttachTestServer::UsedThreadSlots() const {
  const Mapping& m = segment_->mapping();
  int used = 0;
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    used += Load(m.threads[i].owner) != 0 ? 1 : 0;
  }
  return used;
}

}  // namespace memtuned::test
