// SPDX-License-Identifier: Apache-2.0
// Lets processes attach to a pool: a SOCK_SEQPACKET Unix socket, one thread.
// Hands out a process slot and the pool's descriptors, watches the process by
// its pidfd, and gives back what it held when it is gone. Floor 2b.
//
// A process counts as gone when its pidfd says so, or when every copy of its
// connection is closed: it detached, or called exec. The latter never comes
// before its threads stopped using the pool, since the kernel closes
// descriptors after it took the address space down.
#ifndef MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_
#define MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/segment.h"

namespace memtuned {

class AttachServer {
 public:
  // Binds `path` with permissions `mode`; a stale socket file is replaced.
  // Errors: kInvalidArgument (path too long), kUnavailable (bind, listen).
  // REQUIRES: `segment` outlives this.
  static absl::StatusOr<std::unique_ptr<AttachServer>> Start(
      Segment* segment, const std::string& path, int mode,
      const std::string& pool);
  // Stops accepting and removes the socket. Attached processes go on.
  ~AttachServer();

 private:
  // One connection: waiting for its request, or attached.
  struct Client {
    int socket = -1;
    int pidfd = -1;
    uint32_t pid = 0;
    ProcessOwner owner = 0;    // 0: not attached yet
    uint64_t accepted_ns = 0;  // a request must come soon
  };

  AttachServer(Segment* segment, std::string path, std::string pool);
  void Run();
  void Accept();
  void OnReadable(Client& client);
  // Checks the request, takes a slot, answers. Returns: false to close.
  bool Attach(Client& client, const void* request, size_t bytes);
  bool SendDescriptors(Client& client, const struct AttachReply& reply);
  void Close(Client& client);
  void Reap(Client& client);

  Segment* const segment_;
  const std::string path_;
  const std::string pool_;
  int listen_fd_ = -1;
  int wake_fd_ = -1;
  std::atomic<bool> stopping_{false};
  // The rest belongs to the thread.
  ThreadContext context_;
  std::vector<Client> clients_;
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_
