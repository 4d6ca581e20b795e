// SPDX-License-Identifier: Apache-2.0
// What is kept for the next daemon: descriptors in groups, each under a key.
// Floor 2a.
#ifndef MEMTUNED_DAEMON_KEEPER_KEPT_FDS_H_
#define MEMTUNED_DAEMON_KEEPER_KEPT_FDS_H_

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "core/base/file_descriptor.h"
#include "core/mm/page.h"

namespace memtuned {

// What a group is: a pool's files (metadata, then frames), or what an attached
// process is watched by (its connection if there is one, its pidfd).
struct FdKey {
  std::string pool;         // 1 to kMaxKeptName of a-z 0-9 - ~
  ProcessOwner client = 0;  // 0: the pool itself

  auto operator<=>(const FdKey&) const = default;
};
inline constexpr size_t kMaxKeptName = 47;

// Whether `name` may stand in a key.
bool IsKeptName(const std::string& name);

struct KeptFds {
  FdKey key;
  std::vector<FileDescriptor> fds;
};

// Somewhere to keep groups where they outlive this process.
// Thread safety: the caller's.
class FdShelf {
 public:
  virtual ~FdShelf() = default;

  // What an earlier daemon left here. Called once, first of all.
  virtual std::vector<KeptFds> TakeAll() = 0;
  // Keeps copies; replaces what the key had.
  // REQUIRES: the descriptors stay open until the key is forgotten.
  virtual void Store(const FdKey& key, std::span<const int> fds) = 0;
  // A pool's own key stands for those of its clients, too.
  virtual void Forget(const FdKey& key) = 0;
  // The pool's groups are kept only as long as one of its clients lives.
  virtual void Release(const std::string& pool) = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_KEPT_FDS_H_
