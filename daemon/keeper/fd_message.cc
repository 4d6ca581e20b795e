// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper/fd_message.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace memtuned {
namespace {

constexpr int kTries = 2000;
constexpr useconds_t kPauseUs = 1000;

}  // namespace

bool SendWithFds(int socket, const void* data, size_t bytes,
                 std::span<const int> fds) {
  iovec io{const_cast<void*>(data), bytes};
  alignas(
      cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFdsOfMessage)] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (int i = 0; i < kTries; ++i) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0) return sent == static_cast<ssize_t>(bytes);
    if (errno == EINTR) continue;
    // The kernel bounds descriptors that are sent and not yet received.
    if (errno != ETOOMANYREFS) return false;
    usleep(kPauseUs);
  }
  return false;
}

ReceivedMessage ReceiveWithFds(int socket, void* data, size_t size, int flags) {
  // As many as the kernel passes: none is lost for want of room here.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
  iovec io{data, size};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ReceivedMessage received;
  do {
    received.bytes = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (received.bytes < 0 && errno == EINTR);
  if (received.bytes < 0) return received;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      received.fds.emplace_back(fd);
    }
  }
  received.complete = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return received;
}

short EndEvents(int fd) {
  struct stat file {};
  // A connection is readable when its process sends bytes, too; a pidfd only
  // once its process ended.
  const bool connection = fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode);
  return connection ? POLLRDHUP : POLLIN;
}

bool HasEnded(int fd) {
  pollfd look{fd, EndEvents(fd), 0};
  return poll(&look, 1, 0) > 0;
}

}  // namespace memtuned
