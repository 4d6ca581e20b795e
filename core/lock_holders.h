// SPDX-License-Identifier: Apache-2.0
// Which locks of a pool are held right now, and by whom. Floor 2.
#ifndef MEMTUNED_CORE_LOCK_HOLDERS_H_
#define MEMTUNED_CORE_LOCK_HOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/mm/owners.h"
#include "core/segment.h"

namespace memtuned {

struct LockHolder {
  LockKind lock = LockKind::kZone;
  // "nodes/0/zones/Normal", "nodes/0/zones/Normal/pagesets/17"; "" for what
  // belongs to the whole pool.
  std::string where;
  ThreadOwner owner = 0;  // differs when another thread has it
  ProcessOwner process = 0;
  uint32_t tid = 0;  // 0: a thread without a slot
};

// Locks that processes hold which are not known to have died. The daemon's own
// are left out.
// Cost: a load for each lock of the pool and CPU that was ever used.
std::vector<LockHolder> ReadLockHolders(const Segment& segment);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_LOCK_HOLDERS_H_
