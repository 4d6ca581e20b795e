// SPDX-License-Identifier: Apache-2.0
// What a daemon leaves for the one after it: the files of its pools and what
// attached processes are watched by, kept by the service manager and by a
// keeper of its own, whichever there is. Floor 2a.
#ifndef MEMTUNED_DAEMON_KEEPER_FD_STORE_H_
#define MEMTUNED_DAEMON_KEEPER_FD_STORE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "daemon/keeper/keeper_link.h"
#include "daemon/keeper/kept_fds.h"

namespace memtuned {

// What an attached process is watched by.
struct ProcessWatch {
  ProcessOwner owner = 0;
  FileDescriptor connection;  // none when nobody kept it
  FileDescriptor pidfd;

  bool HasEnded() const;  // the process
  // The process ended or closed its connection. The latter is a hint: it may
  // use the pool still.
  bool HasLeft() const;
};

// A pool that an earlier daemon served.
struct KeptPool {
  std::string name;
  std::string source;                 // who kept it, for the log
  std::vector<FileDescriptor> files;  // metadata, then frames
  std::vector<ProcessWatch> clients;
};

struct FdStoreOptions {
  std::string keeper_path;
  // Run as a keeper; see kKeeperFlag.
  std::string program = "/proc/self/exe";
};

// Pools are known by name. Descriptors that are stored stay their owner's, and
// open until they are forgotten.
//
// Thread safety: any thread.
class FdStore {
 public:
  // Keeps nothing and has nothing: for pools that end with their daemon.
  FdStore();
  // Fetches what earlier daemons left.
  // Blocks: up to 2 s, when a keeper hangs.
  // REQUIRES: no other thread runs; one daemon at a time uses the path.
  explicit FdStore(const FdStoreOptions& options);
  ~FdStore();

  // What an earlier daemon left under `name`; nothing the second time.
  std::optional<KeptPool> Take(const std::string& name) EXCLUDES(mutex_);

  void StorePool(const std::string& name, const std::vector<int>& files)
      EXCLUDES(mutex_);
  // `connection` is -1 when there is none.
  void StoreClient(const std::string& name, ProcessOwner owner, int connection,
                   int pidfd) EXCLUDES(mutex_);
  void ForgetClient(const std::string& name, ProcessOwner owner)
      EXCLUDES(mutex_);
  void ForgetPool(const std::string& name) EXCLUDES(mutex_);
  // This daemon ends: the pool is kept as long as one of its clients lives.
  // Its descriptors may be closed from now on.
  void ReleasePool(const std::string& name) EXCLUDES(mutex_);

  // A pool that this daemon cannot serve: it is kept, under another name, as
  // long as one of its clients lives. Logs `why`.
  void Leave(KeptPool pool, const std::string& why) EXCLUDES(mutex_);
  // The same for all that nobody took.
  void LeaveRest(const std::string& why) EXCLUDES(mutex_);

  // Looks after the keeper and the pools that were left. To be called about
  // once a second.
  void Tend() EXCLUDES(mutex_);

 private:
  void SortLocked(std::vector<KeptFds> groups, const std::string& source)
      REQUIRES(mutex_);
  void MergeLocked(KeptPool pool) REQUIRES(mutex_);
  void StoreLocked(const FdKey& key, const std::vector<int>& fds)
      REQUIRES(mutex_);
  void ForgetLocked(const FdKey& key) REQUIRES(mutex_);
  void LeaveLocked(KeptPool pool, const std::string& why) REQUIRES(mutex_);
  void StoreLeftLocked(const KeptPool& pool) REQUIRES(mutex_);
  std::string NewNameLocked(const std::string& name) REQUIRES(mutex_);
  void DropDesertedLocked() REQUIRES(mutex_);

  Mutex mutex_;
  std::unique_ptr<KeeperLink> keeper_ GUARDED_BY(mutex_);
  std::unique_ptr<FdShelf> manager_ GUARDED_BY(mutex_);
  std::vector<KeptPool> found_ GUARDED_BY(mutex_);  // not taken yet
  std::vector<KeptPool> left_ GUARDED_BY(mutex_);
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_FD_STORE_H_
