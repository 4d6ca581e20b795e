// SPDX-License-Identifier: Apache-2.0
// Messages with descriptors over a SOCK_SEQPACKET socket, and the look at a
// descriptor that tells whether the process behind it is gone. Floor 2a.
#ifndef MEMTUNED_DAEMON_KEEPER_FD_MESSAGE_H_
#define MEMTUNED_DAEMON_KEEPER_FD_MESSAGE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/file_descriptor.h"

namespace memtuned {

// Descriptors in one message; the kernel's limit is 253.
inline constexpr size_t kMaxFdsOfMessage = 250;

// Blocks: as the socket does, and up to 2 s while too many descriptors are
// under way.
// REQUIRES: at most kMaxFdsOfMessage descriptors.
// Returns: false when it could not be sent whole; errno says why.
bool SendWithFds(int socket, const void* data, size_t bytes,
                 std::span<const int> fds);

struct ReceivedMessage {
  // 0: the other end is closed; below 0: nothing came, errno says why.
  ssize_t bytes = -1;
  std::vector<FileDescriptor> fds;
  bool complete = true;  // false: longer than `size`, or not every descriptor
};
// `flags`: of recvmsg(2).
ReceivedMessage ReceiveWithFds(int socket, void* data, size_t size, int flags);

// What poll() is to look for in a descriptor of a client, and whether it has
// it: the process ended, or closed every copy of its connection.
short EndEvents(int fd);
bool HasEnded(int fd);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_FD_MESSAGE_H_
