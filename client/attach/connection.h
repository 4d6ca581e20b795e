// SPDX-License-Identifier: Apache-2.0
// The client's half of core/attach_message.h: connect, ask, receive the reply
// and its descriptors. Whatever goes wrong, every descriptor that came is
// closed again.
#ifndef MEMTUNED_CLIENT_ATTACH_CONNECTION_H_
#define MEMTUNED_CLIENT_ATTACH_CONNECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/attach/deadline.h"
#include "client/attach/include/memtuned/memtuned.h"
#include "core/base/file_descriptor.h"
#include "core/segment.h"

namespace memtuned::attach {

// Ok, or why not in one sentence.
struct Outcome {
  memtuned_status status = MEMTUNED_OK;
  std::string message;

  bool ok() const { return status == MEMTUNED_OK; }
};

// What the daemon handed out.
struct Granted {
  FileDescriptor connection;
  FileDescriptor metadata;
  std::vector<FileDescriptor> frames;
  uint32_t owner = 0;  // ProcessOwner
};

// Connects to the socket at `path`.
// Blocks: until the deadline, while the daemon's queue is full.
Outcome Connect(const std::string& path, const Deadline& deadline,
                FileDescriptor* connection);

// Asks for the pool over granted->connection and fills the rest.
// Blocks: until the deadline.
Outcome Handshake(const Deadline& deadline, Segment::Access access,
                  Granted* granted);

}  // namespace memtuned::attach

#endif  // MEMTUNED_CLIENT_ATTACH_CONNECTION_H_
