// SPDX-License-Identifier: Apache-2.0
// Which nodes a process may allocate from: its cpuset, which an operator sets,
// and its memory policy, which it asks for itself. Both are kept as they were
// asked for; what is in force (core/mm/cpuset.h) is computed anew when either
// changes, as the kernel rebinds a policy when a task's cpuset moves:
//
//   nodes     the cpuset; under kBind those of the policy that are in it
//   policy    as asked for; kLocal while none of its nodes may be used
//
// What a process holds stays where it is. Floor 2.
#ifndef MEMTUNED_CORE_PROCESS_MEMS_H_
#define MEMTUNED_CORE_PROCESS_MEMS_H_

#include "absl/status/status.h"
#include "core/base/node_mask.h"
#include "core/mm/cpuset.h"
#include "core/segment.h"

namespace memtuned {

// Nodes, by their number in the operating system, that have memory of the pool.
NodeMask NodesWithMemory(const Segment& segment);

// All() unless an operator said otherwise. Under the tuning lock, or a glance.
NodeMask CpusetOf(const ProcessSlot& slot);

// Puts in force what is asked for. Done twice it does no harm: whoever takes
// the tuning lock over from a dead thread does it for every process.
void PublishMemsLocked(Segment& segment, ProcessSlot& slot)
    REQUIRES(segment.header().tuning_lock);

// For the process that `owner` names, and not for the next one in its slot. In
// force for every allocation that begins after the return.
// REQUIRES: one of `nodes` has memory of the pool.
void SetCpusetLocked(Segment& segment, ProcessSlot& slot, ProcessOwner owner,
                     const NodeMask& nodes)
    REQUIRES(segment.header().tuning_lock);

// `nodes` is ignored for kLocal.
// Errors: kInvalidArgument, and nothing changed, when none of the nodes has
// memory of the pool that the process may use.
absl::Status SetPolicyLocked(Segment& segment, ProcessSlot& slot,
                             MemoryPolicy policy, const NodeMask& nodes)
    REQUIRES(segment.header().tuning_lock);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_PROCESS_MEMS_H_
