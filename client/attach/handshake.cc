// SPDX-License-Identifier: Apache-2.0
// One request, one reply, and as many descriptors as it announces.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/attach/connection.h"
#include "core/attach_message.h"
#include "core/base/topology.h"
#include "core/segment.h"

namespace memtuned::attach {
namespace {

constexpr size_t kMostFds = 253;  // SCM_MAX_FD: what one message can carry

struct Message {
  // One byte more than a reply, so that a longer one is seen.
  std::array<char, sizeof(AttachReply) + 1> bytes{};
  size_t size = 0;
  std::vector<FileDescriptor> fds;
};

Outcome BadReply(const std::string& why) {
  return {MEMTUNED_BAD_REPLY,
          absl::StrCat("what answered is not a memtuned daemon: ", why)};
}

Outcome Wait(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd entry = {fd, events, 0};
    const int ready = poll(&entry, 1, deadline.left_ms());
    if (ready > 0) return {};
    if (ready == 0) {
      return {MEMTUNED_DEADLINE_EXCEEDED,
              absl::StrCat("the daemon did not answer within ",
                           deadline.total().count(), " ms")};
    }
    if (errno != EINTR) {
      return {MEMTUNED_NO_RESOURCES,
              absl::StrCat("poll: ", std::strerror(errno))};
    }
  }
}

Outcome Closed(int error) {
  return {
      MEMTUNED_UNAVAILABLE,
      absl::StrCat("the daemon closed the connection", error == 0 ? "" : ": ",
                   error == 0 ? "" : std::strerror(error))};
}

Outcome Send(int fd, const AttachRequest& request, const Deadline& deadline) {
  for (;;) {
    if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(sizeof(request))) {
      return {};
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN) return Closed(error);
    if (Outcome ready = Wait(fd, POLLOUT, deadline); !ready.ok()) return ready;
  }
}

// Takes the descriptors out of a received message, before anything is judged.
void Collect(msghdr* header, std::vector<FileDescriptor>* fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr;
       part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      fds->emplace_back(fd);
    }
  }
}

Outcome Receive(int fd, const Deadline& deadline, Message* message) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFds)> control;
  iovec data = {message->bytes.data(), message->bytes.size()};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  message->fds.reserve(message->fds.size() + kMostFds);
  for (;;) {
    if (Outcome ready = Wait(fd, POLLIN, deadline); !ready.ok()) return ready;
    const ssize_t got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Closed(errno);
    message->size = static_cast<size_t>(got);
    break;
  }
  Collect(&header, &message->fds);
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return {MEMTUNED_NO_RESOURCES,
            "not every descriptor of the pool could be received: raise this "
            "process's limit of open files (RLIMIT_NOFILE)"};
  }
  if (message->size == 0) return Closed(0);
  return {};
}

Outcome Refused(const AttachReply& reply) {
  // The sentence comes from outside: it ends where its array does.
  const size_t length = strnlen(reply.message.data(), reply.message.size());
  const std::string said(reply.message.data(), length);
  const auto with = [&said](const char* what) {
    return said.empty() ? std::string(what) : absl::StrCat(what, ": ", said);
  };
  switch (reply.status) {
    case AttachStatus::kLayoutDiffers:
      return {MEMTUNED_LAYOUT_DIFFERS,
              with(absl::StrCat("the daemon has layout ", reply.layout_version,
                                " abi ", absl::Hex(reply.abi_hash),
                                ", this library layout ", kLayoutVersion,
                                " abi ", absl::Hex(AbiHash()),
                                ": install the same version of both")
                       .c_str())};
    case AttachStatus::kDenied:
      return {MEMTUNED_PERMISSION_DENIED,
              with(absl::StrCat("the daemon refused uid ", geteuid(), ", gid ",
                                getegid())
                       .c_str())};
    case AttachStatus::kFull:
      return {MEMTUNED_POOL_FULL, with("the pool takes no more")};
    case AttachStatus::kShuttingDown:
      return {MEMTUNED_UNAVAILABLE, with("the daemon is shutting down")};
    case AttachStatus::kBadRequest:
      return {MEMTUNED_LAYOUT_DIFFERS,
              with("the daemon does not understand this library's request")};
    case AttachStatus::kOk:
      break;
  }
  return BadReply(absl::StrCat("status ", static_cast<uint32_t>(reply.status)));
}

Outcome ReadReply(const Message& message, AttachReply* reply) {
  if (message.size != sizeof(AttachReply)) {
    return BadReply(
        absl::StrCat(message.size > sizeof(AttachReply) ? "more than " : "",
                     std::min(message.size, sizeof(AttachReply)),
                     " bytes; expected ", sizeof(AttachReply)));
  }
  std::memcpy(reply, message.bytes.data(), sizeof(*reply));
  if (reply->magic != kAttachMagic || reply->protocol != kAttachProtocol) {
    return BadReply(absl::StrCat("magic ", absl::Hex(reply->magic),
                                 " protocol ", reply->protocol,
                                 "; expected magic ", absl::Hex(kAttachMagic),
                                 " protocol ", kAttachProtocol));
  }
  if (reply->status != AttachStatus::kOk) return Refused(*reply);
  if (reply->layout_version != kLayoutVersion || reply->abi_hash != AbiHash()) {
    AttachReply differs = *reply;
    differs.status = AttachStatus::kLayoutDiffers;
    return Refused(differs);
  }
  if (reply->nr_frame_fds == 0 || reply->nr_frame_fds > kMaxNodes) {
    return BadReply(absl::StrCat(
        reply->nr_frame_fds, " frame descriptors; allowed 1 to ", kMaxNodes));
  }
  return {};
}

// Descriptors come in full messages but for the last.
Outcome CheckCount(const Message& message, size_t expected) {
  const size_t have = message.fds.size();
  if (have == expected ||
      (have < expected && have % kFdsPerMessage == 0 && have != 0)) {
    return {};
  }
  return BadReply(absl::StrCat(have, " descriptors; expected ", expected));
}

}  // namespace

Outcome Handshake(const Deadline& deadline, Segment::Access access,
                  Granted* granted) {
  const int fd = granted->connection.get();
  AttachRequest request;
  request.layout_version = kLayoutVersion;
  request.abi_hash = AbiHash();
  if (access == Segment::Access::kRead) request.flags = kAttachToRead;
  if (Outcome sent = Send(fd, request, deadline); !sent.ok()) return sent;

  Message message;
  if (Outcome got = Receive(fd, deadline, &message); !got.ok()) return got;
  AttachReply reply;
  if (Outcome read = ReadReply(message, &reply); !read.ok()) return read;

  const size_t expected = size_t{reply.nr_frame_fds} + 1;
  Outcome complete = CheckCount(message, expected);
  while (complete.ok() && message.fds.size() < expected) {
    const size_t before = message.fds.size();
    if (Outcome got = Receive(fd, deadline, &message); !got.ok()) return got;
    // Each brings some, so a peer that chatters cannot keep us here.
    complete = message.size == 1 && message.fds.size() > before
                   ? CheckCount(message, expected)
                   : BadReply("a message without descriptors among them");
  }
  if (!complete.ok()) return complete;
  granted->owner = reply.owner;
  granted->metadata = std::move(message.fds[0]);
  message.fds.erase(message.fds.begin());
  granted->frames = std::move(message.fds);
  return {};
}

}  // namespace memtuned::attach
