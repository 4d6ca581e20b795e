// SPDX-License-Identifier: Apache-2.0
// Lets processes attach to a pool: a SOCK_SEQPACKET Unix socket, one thread.
// Hands out a process slot and the pool's descriptors, watches the process by
// its pidfd, and tells the reaper when it is gone. Floor 2b.
//
// A process counts as gone when its pidfd says so. That every copy of its
// connection is closed is a hint: it detached or called exec, which its slots
// then say as well (ProcessLeft), or it closed what is not its to close.
#ifndef MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_
#define MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_

#include <poll.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/segment.h"
#include "daemon/keeper/fd_store.h"
#include "daemon/pool/reaper.h"

namespace memtuned {

struct AttachServerOptions {
  std::string path;  // of the socket
  int mode = 0660;   // its permissions
  std::string pool;  // its name
  // Processes that attached to an earlier daemon.
  std::vector<ProcessWatch> attached;
};

class AttachServer {
 public:
  // A stale socket file is replaced. What a process is watched by is stored
  // before it learns that it is attached.
  // Errors: kInvalidArgument (path too long), kUnavailable (bind, listen).
  // REQUIRES: `segment`, `store` and `reaper` outlive this.
  static absl::StatusOr<std::unique_ptr<AttachServer>> Start(
      Segment* segment, FdStore* store, Reaper* reaper,
      AttachServerOptions options);
  // Attached processes go on.
  ~AttachServer();

  // Ends the thread and removes the socket; processes are still watched by
  // what is open here. May be called again.
  void Stop();

 private:
  // One connection: waiting for its request, or attached.
  struct Client {
    ProcessWatch process;  // owner 0: not attached yet
    uint32_t pid = 0;
    uint64_t accepted_ns = 0;  // a request must come soon
    bool closed = false;
  };

  AttachServer(Segment* segment, FdStore* store, Reaper* reaper,
               AttachServerOptions options);
  absl::Status Listen();
  void Run();
  void Look(Client& client, const pollfd& connection, const pollfd& pidfd);
  // Its connection is closed, or was never seen by this daemon.
  void LookWithoutConnection(Client& client);
  void Accept();
  void OnReadable(Client& client);
  // Checks the request, takes a slot, answers. Returns: false to close.
  bool Attach(Client& client, const void* request, size_t bytes);
  bool SendDescriptors(Client& client, const struct AttachReply& reply);
  void Close(Client& client);

  Segment* const segment_;
  FdStore* const store_;
  Reaper* const reaper_;
  const AttachServerOptions options_;
  FileDescriptor listener_;
  FileDescriptor wake_;
  std::atomic<bool> stopping_{false};
  std::vector<Client> clients_;  // the thread's
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_
