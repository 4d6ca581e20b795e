// SPDX-License-Identifier: Apache-2.0
// Going on with a pool that an earlier daemon served: it is looked over,
// compared with the configuration, and its processes are found again.
// Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_POOL_TAKEOVER_H_
#define MEMTUNED_DAEMON_POOL_POOL_TAKEOVER_H_

#include <memory>
#include <vector>

#include "core/segment.h"
#include "daemon/keeper/fd_store.h"

namespace memtuned {

struct TakenPool {
  std::unique_ptr<Segment> segment;    // none: there is no such pool
  std::vector<ProcessWatch> attached;  // to be watched
  std::vector<ProcessWatch> gone;      // to be reaped
};

// The pool that `wanted` names, if an earlier daemon left one that can be
// served: from `store`, else from a process that is attached to it. It keeps
// its tunables, generation and counters, whatever the configuration says. One
// that cannot be served is left to its processes; one of another size is
// replaced if it has none.
// Logs what it finds.
// REQUIRES: no other daemon serves it.
TakenPool TakeOverPool(const SegmentConfig& wanted, FdStore& store);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_POOL_TAKEOVER_H_
