// SPDX-License-Identifier: Apache-2.0
// The service manager's store of descriptors (systemd,
// FileDescriptorStoreMax=): it hands them to the service's next main process.
// Floor 2a.
//
// Each descriptor has a name of its own, since the store keeps no order:
// POOL.CLIENT.NUMBER.TOTAL, as in "default.0.1.3". The manager forgets all of
// them when the service is stopped for good, so Release has nothing to do.
#ifndef MEMTUNED_DAEMON_KEEPER_SERVICE_SHELF_H_
#define MEMTUNED_DAEMON_KEEPER_SERVICE_SHELF_H_

#include <map>
#include <string>
#include <vector>

#include "daemon/keeper/kept_fds.h"

namespace memtuned {

class ServiceShelf : public FdShelf {
 public:
  // Whether there is a manager to talk to.
  static bool Present();

  // REQUIRES: no other thread runs; the environment is read and cleared.
  std::vector<KeptFds> TakeAll() override;
  void Store(const FdKey& key, std::span<const int> fds) override;
  void Forget(const FdKey& key) override;
  void Release(const std::string& pool) override;

 private:
  void ForgetNames(const std::vector<std::string>& names);

  std::map<FdKey, std::vector<std::string>> names_;
};

// The place of one descriptor in a group, and its name.
struct ShelfName {
  FdKey key;
  size_t number = 0, total = 0;

  std::string Text() const;
  // Returns: false when `text` is no such name.
  bool Parse(const std::string& text);
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_KEEPER_SERVICE_SHELF_H_
