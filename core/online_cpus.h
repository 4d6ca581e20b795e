// SPDX-License-Identifier: Apache-2.0
// CPUs that come and go while a pool runs. Floor 2.
#ifndef MEMTUNED_CORE_ONLINE_CPUS_H_
#define MEMTUNED_CORE_ONLINE_CPUS_H_

#include <vector>

#include "core/segment.h"

namespace memtuned {

// Tells the pool which CPUs are online now. When that changed, limits are
// recalculated as the policy says, and the pagesets of CPUs that went are
// drained into their zones. Numbers the pool has no pageset for are ignored.
// Takes: the tuning lock; then, for each pageset of a CPU that went, its
// guard and its zone's lock.
// Returns: whether anything changed.
bool SetOnlineCpus(Segment& segment, const std::vector<int>& cpus,
                   ThreadContext& thread);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_ONLINE_CPUS_H_
