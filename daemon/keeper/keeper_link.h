// SPDX-License-Identifier: Apache-2.0
// The daemon's end of its keeper: finds the one that is there, starts one when
// there is something to keep, and another one when that ends. Floor 2a.
#ifndef MEMTUNED_DAEMON_KEEPER_KEEPER_LINK_H_
#define MEMTUNED_DAEMON_KEEPER_KEEPER_LINK_H_

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/keeper/kept_fds.h"

namespace memtuned {

class KeeperLink : public FdShelf {
 public:
  // `path`: the keeper's socket. `program`: run as a keeper (see kKeeperFlag).
  // REQUIRES: one daemon at a time uses `path`.
  KeeperLink(std::string path, std::string program);
  // Blocks: up to 1 s, until a keeper that keeps nothing has gone.
  ~KeeperLink() override;

  // Blocks: up to 2 s.
  std::vector<KeptFds> TakeAll() override;
  void Store(const FdKey& key, std::span<const int> fds) override;
  void Forget(const FdKey& key) override;
  void Release(const std::string& pool) override;

  // This daemon ends: what is kept of the pool may be closed here from now on.
  void LetGo(const std::string& pool);
  // Replaces a keeper that ended. To be called now and then.
  // Blocks: up to 2 s, when a keeper does not read.
  void Tend();

 private:
  absl::Status Connect();
  // Binds the socket anew and runs a keeper on it.
  absl::Status Spawn();
  void Replace();
  bool Lost() const;
  // Tells the keeper, and starts one if there is none.
  template <typename Tell>
  void With(Tell tell);
  void Collect();

  const std::string path_;
  const std::string program_;
  FileDescriptor socket_;
  std::vector<pid_t> children_;  // keepers this process started
  bool failed_ = false;
  bool let_go_ = false;
  // What a new keeper is told; descriptors are their owners'.
  std::map<FdKey, std::vector<int>> kept_;
  std::set<std::string> released_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_KEEPER_LINK_H_
