// SPDX-License-Identifier: Apache-2.0
// Lets processes attach to a pool: a SOCK_SEQPACKET Unix socket, one thread.
// Hands out a process slot and the pool's descriptors, watches the process by
// its pidfd, and tells the reaper when it is gone. Floor 2b.
//
// Who attaches to read only (an observer) gets descriptors that were opened
// for reading, and no slot: nothing is left to reap when it goes, and a daemon
// that takes the pool over knows nothing of it. The files are the daemon's,
// with mode 0600, so another user cannot open them anew for writing; root and
// the daemon's own user can.
//
// A process counts as gone when its pidfd says so. That every copy of its
// connection is closed is a hint: it detached or called exec, which its slots
// then say as well (ProcessLeft), or it closed what is not its to close.
#ifndef MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_
#define MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_

#include <poll.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attach_message.h"
#include "core/base/mutex.h"
#include "core/segment.h"
#include "daemon/keeper/fd_store.h"
#include "daemon/pool/reaper.h"
#include "daemon/user_list.h"

namespace memtuned {

struct AttachServerOptions {
  std::string path;  // of the socket
  int mode = 0660;   // its permissions
  std::string pool;  // its name
  PoolUsers users;   // who may attach, of those who can connect
  // Processes that attached to an earlier daemon.
  std::vector<ProcessWatch> attached;
};

// Thread safety: any thread, but one at a time starts and stops it.
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

  // Who may attach from now on. Processes that have are left alone. Logs who
  // of them cannot connect.
  void SetUsers(const PoolUsers& users) EXCLUDES(mutex_);

  uint64_t observers() const { return observers_.load(); }
  // Since the start, by reason.
  std::map<std::string, uint64_t> Refusals() const;

 private:
  // One connection: waiting for its request, attached or observing.
  struct Client {
    ProcessWatch process;  // owner 0: not attached
    UnixPeer peer;
    uint64_t accepted_ns = 0;  // a request must come soon
    bool observes = false;
    bool closed = false;

    bool Waits() const { return process.owner == 0 && !observes; }
  };

  AttachServer(Segment* segment, FdStore* store, Reaper* reaper,
               AttachServerOptions options);
  absl::Status Listen();
  void Run();
  void Look(Client& client, const pollfd& connection, const pollfd& pidfd);
  // Its connection is closed, or was never seen by this daemon.
  void LookWithoutConnection(Client& client);
  void Accept();
  // False: there are too many connections, of this user or in all.
  bool HasRoomFor(const UnixPeer& peer) const;
  void OnReadable(Client& client);
  // Checks the request, answers. Returns: false to close, as do the next ones.
  bool Answer(Client& client, const void* request, size_t bytes);
  // Takes a slot.
  bool Attach(Client& client);
  bool Observe(Client& client);
  bool Refuse(const Client& client, AttachStatus status,
              const std::string& message);
  void NoteRefusal(const Client& client, AttachStatus status,
                   const std::string& why);
  // Errors: kUnavailable.
  absl::Status OpenViews();
  bool SendDescriptors(const Client& client, ProcessOwner owner,
                       const std::vector<int>& fds);
  void Close(Client& client);

  Segment* const segment_;
  FdStore* const store_;
  Reaper* const reaper_;
  const AttachServerOptions options_;
  FileDescriptor listener_;
  FileDescriptor wake_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> observers_{0};
  std::array<std::atomic<uint64_t>, kNumAttachStatuses> refusals_{};
  Mutex mutex_;
  PoolUsers users_ GUARDED_BY(mutex_);
  // The rest belongs to the thread.
  std::vector<Client> clients_;
  // The pool's files, opened for reading; none before the first observer. They
  // stay open: closing one would end this daemon's claim (pool_claim.h).
  std::vector<FileDescriptor> views_;
  // Refusals in the log: since when, how many, and how many were left out.
  uint64_t logged_since_ns_ = 0;
  int logged_ = 0;
  uint64_t left_out_ = 0;
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_ATTACH_SERVER_H_
