// SPDX-License-Identifier: Apache-2.0
// The keeper: a process that a daemon starts beside itself and that outlives
// it. It holds the descriptors of the daemon's pools and of what attached
// processes are watched by, and hands copies to the next daemon. It touches no
// pool: whatever happens to one, the keeper goes on. Floor 2a.
#ifndef MEMTUNED_DAEMON_KEEPER_KEEPER_H_
#define MEMTUNED_DAEMON_KEEPER_KEEPER_H_

#include <poll.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/file_descriptor.h"
#include "daemon/keeper/keeper_message.h"

namespace memtuned {

class Keeper {
 public:
  // Most that is kept; what is beyond is not taken.
  static constexpr size_t kMaxFds = 60000;
  static constexpr size_t kMaxConnections = 16;

  // `listener`: a listening SOCK_SEQPACKET socket, bound to `path`; `file`:
  // open (O_PATH) on the file that it has there. Only processes of this user
  // are served.
  Keeper(FileDescriptor listener, FileDescriptor file, std::string path);

  // Serves until nobody is connected, and nothing is kept or nobody could
  // come for it any more because `file` was removed. Removes it itself then.
  void Run();

 private:
  struct Connection {
    FileDescriptor socket;
    GroupReader reader;
  };

  // Whether a daemon could come: the socket's file has its name still.
  bool Reachable() const;
  bool Done() const;
  void Wait(std::vector<pollfd>& polled);
  void Accept();
  // All that has come by now. Returns: false to close the connection.
  bool Serve(Connection& connection);
  bool Do(KeeperVerb verb, KeptFds group, int socket);
  bool Hand(int socket);
  void Store(KeptFds group);
  void Forget(const FdKey& key);
  // Of released pools, forgets clients that are gone, then pools without any.
  void DropReleased();
  template <typename Visit>
  void VisitReleasedClients(Visit visit);

  const FileDescriptor listener_;
  const FileDescriptor file_;
  const std::string path_;
  std::vector<Connection> connections_;
  std::map<FdKey, std::vector<FileDescriptor>> groups_;
  std::set<std::string> released_;
  size_t nr_fds_ = 0;
};

// The word on the command line that makes a daemon's program a keeper:
// "memtuned --keeper PATH".
inline constexpr char kKeeperFlag[] = "--keeper";
// The descriptors it is started with: the constructor's `listener` and `file`.
inline constexpr int kKeeperListener = 3;
inline constexpr int kKeeperFile = 4;

// The keeper as a process of its own. Lets go of all else that it inherited.
// Returns: an exit code.
int RunKeeper(const std::string& path);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_KEEPER_H_
