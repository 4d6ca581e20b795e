// SPDX-License-Identifier: Apache-2.0
// The last resort when nobody kept a pool: its files are still open in the
// processes that are attached to it. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_POOL_SEARCH_H_
#define MEMTUNED_DAEMON_POOL_POOL_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/segment.h"
#include "daemon/keeper/fd_store.h"

namespace memtuned {

struct FoundPool {
  KeptPool pool;
  std::vector<uint32_t> holders;  // processes that have it open
};

// Pools of that name in processes of this user, the newest first, each once.
// Left out are those in the care of a daemon or keeper, and processes that
// have files of several pools of one name: which frames belong to which is
// not known.
// Cost: reads /proc/PID/fd of each of the user's processes.
std::vector<FoundPool> FindPoolsInProcesses(const std::string& name);

// Whether each holder is attached, or the child of one that is: then nobody
// else has a use for the pool, such as a daemon that claimed nothing.
bool HeldByItsProcesses(const FoundPool& found, const Segment& segment);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_POOL_SEARCH_H_
