// SPDX-License-Identifier: Apache-2.0
#include "daemon/keeper/fd_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/keeper/fd_message.h"
#include "daemon/keeper/service_shelf.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

// A pool that was left is NAME~N: no pool is configured under such a name.
constexpr char kLeft = '~';

bool WasLeft(const std::string& name) {
  return name.find(kLeft) != std::string::npos;
}

bool SameFile(const FileDescriptor& a, const FileDescriptor& b) {
  struct stat left {
  }, right{};
  return fstat(a.get(), &left) == 0 && fstat(b.get(), &right) == 0 &&
         left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

std::vector<int> NumbersOf(const std::vector<FileDescriptor>& fds) {
  std::vector<int> numbers;
  numbers.reserve(fds.size());
  for (const FileDescriptor& fd : fds) numbers.push_back(fd.get());
  return numbers;
}

std::vector<int> NumbersOf(int connection, int pidfd) {
  if (connection < 0) return {pidfd};
  return {connection, pidfd};
}

size_t Living(const KeptPool& pool) {
  return static_cast<size_t>(
      std::count_if(pool.clients.begin(), pool.clients.end(),
                    [](const ProcessWatch& c) { return !c.HasLeft(); }));
}

}  // namespace

bool ProcessWatch::HasEnded() const { return memtuned::HasEnded(pidfd.get()); }

bool ProcessWatch::HasLeft() const {
  return HasEnded() ||
         (connection.get() >= 0 && memtuned::HasEnded(connection.get()));
}

FdStore::FdStore() = default;
FdStore::~FdStore() = default;

FdStore::FdStore(const FdStoreOptions& options) {
  MutexLock lock(mutex_);
  if (ServiceShelf::Present()) {
    manager_ = std::make_unique<ServiceShelf>();
    SortLocked(manager_->TakeAll(), "service manager");
  }
  keeper_ = std::make_unique<KeeperLink>(options.keeper_path, options.program);
  SortLocked(keeper_->TakeAll(), "keeper");
  // Each side now gets what only the other one had.
  for (const KeptPool& pool : left_) StoreLeftLocked(pool);
}

void FdStore::SortLocked(std::vector<KeptFds> groups,
                         const std::string& source) {
  std::map<std::string, KeptPool> pools;
  for (KeptFds& group : groups) {
    KeptPool& pool = pools[group.key.pool];
    if (group.key.client == 0) {
      pool.files = std::move(group.fds);
      continue;
    }
    ProcessWatch client;
    client.owner = group.key.client;
    client.pidfd = std::move(group.fds.back());
    if (group.fds.size() > 1) client.connection = std::move(group.fds.front());
    pool.clients.push_back(std::move(client));
  }
  for (auto& [name, pool] : pools) {
    pool.name = name;
    pool.source = source;
    if (pool.files.empty()) {
      ForgetLocked({name, 0});  // clients of no pool
    } else {
      MergeLocked(std::move(pool));
    }
  }
}

// The same pool may come from both sides, and each may have what the other
// lacks.
void FdStore::MergeLocked(KeptPool pool) {
  auto& list = WasLeft(pool.name) ? left_ : found_;
  for (KeptPool& known : list) {
    if (known.name != pool.name) continue;
    if (!SameFile(known.files[0], pool.files[0])) {
      // The second one, the keeper's, cannot have the first one's name.
      if (keeper_ != nullptr) keeper_->Forget({pool.name, 0});
      pool.name = NewNameLocked(pool.name);
      left_.push_back(std::move(pool));
      return;
    }
    for (ProcessWatch& client : pool.clients) {
      const bool has = std::any_of(
          known.clients.begin(), known.clients.end(),
          [&](const ProcessWatch& c) { return c.owner == client.owner; });
      if (!has) known.clients.push_back(std::move(client));
    }
    return;
  }
  list.push_back(std::move(pool));
}

std::optional<KeptPool> FdStore::Take(const std::string& name) {
  MutexLock lock(mutex_);
  const auto it =
      std::find_if(found_.begin(), found_.end(),
                   [&name](const KeptPool& pool) { return pool.name == name; });
  if (it == found_.end()) return std::nullopt;
  KeptPool pool = std::move(*it);
  found_.erase(it);
  return pool;
}

void FdStore::StoreLocked(const FdKey& key, const std::vector<int>& fds) {
  if (keeper_ != nullptr) keeper_->Store(key, fds);
  if (manager_ != nullptr) manager_->Store(key, fds);
}

void FdStore::ForgetLocked(const FdKey& key) {
  if (keeper_ != nullptr) keeper_->Forget(key);
  if (manager_ != nullptr) manager_->Forget(key);
}

void FdStore::StorePool(const std::string& name,
                        const std::vector<int>& files) {
  MutexLock lock(mutex_);
  StoreLocked({name, 0}, files);
}

void FdStore::StoreClient(const std::string& name, ProcessOwner owner,
                          int connection, int pidfd) {
  MutexLock lock(mutex_);
  StoreLocked({name, owner}, NumbersOf(connection, pidfd));
}

void FdStore::ForgetClient(const std::string& name, ProcessOwner owner) {
  MutexLock lock(mutex_);
  ForgetLocked({name, owner});
}

void FdStore::ForgetPool(const std::string& name) {
  MutexLock lock(mutex_);
  ForgetLocked({name, 0});
}

void FdStore::ReleasePool(const std::string& name) {
  MutexLock lock(mutex_);
  if (manager_ != nullptr) manager_->Release(name);
  if (keeper_ == nullptr) return;
  keeper_->Release(name);
  keeper_->LetGo(name);
}

std::string FdStore::NewNameLocked(const std::string& name) {
  for (int i = 1;; ++i) {
    std::string next = absl::StrCat(name, std::string(1, kLeft), i);
    const bool taken =
        std::any_of(left_.begin(), left_.end(),
                    [&next](const KeptPool& p) { return p.name == next; });
    if (!taken) return next;
  }
}

void FdStore::Leave(KeptPool pool, const std::string& why) {
  MutexLock lock(mutex_);
  LeaveLocked(std::move(pool), why);
}

void FdStore::LeaveLocked(KeptPool pool, const std::string& why) {
  const std::string was = pool.name;
  ForgetLocked({was, 0});
  std::erase_if(pool.clients,
                [](const ProcessWatch& c) { return c.HasLeft(); });
  LogEvent(LogLevel::kWarning,
           pool.clients.empty() ? "pool-dropped" : "pool-left",
           {{"pool", was},
            {"why", why},
            {"processes", absl::StrCat(pool.clients.size())},
            {"source", pool.source}});
  if (pool.clients.empty()) return;
  pool.name = NewNameLocked(was);
  StoreLeftLocked(pool);
  left_.push_back(std::move(pool));
}

void FdStore::StoreLeftLocked(const KeptPool& pool) {
  StoreLocked({pool.name, 0}, NumbersOf(pool.files));
  for (const ProcessWatch& client : pool.clients) {
    StoreLocked({pool.name, client.owner},
                NumbersOf(client.connection.get(), client.pidfd.get()));
  }
  if (keeper_ != nullptr) keeper_->Release(pool.name);
}

void FdStore::LeaveRest(const std::string& why) {
  MutexLock lock(mutex_);
  for (KeptPool& pool : std::exchange(found_, {})) {
    LeaveLocked(std::move(pool), why);
  }
}

void FdStore::DropDesertedLocked() {
  std::erase_if(left_, [this](const KeptPool& pool) REQUIRES(mutex_) {
    if (Living(pool) > 0) return false;
    LogEvent(LogLevel::kInfo, "pool-dropped",
             {{"pool", pool.name}, {"why", "its last process left"}});
    ForgetLocked({pool.name, 0});
    return true;
  });
}

void FdStore::Tend() {
  MutexLock lock(mutex_);
  if (keeper_ != nullptr) keeper_->Tend();
  DropDesertedLocked();
}

}  // namespace memtuned
