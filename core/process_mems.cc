// SPDX-License-Identifier: Apache-2.0
#include "core/process_mems.h"

namespace memtuned {

NodeMask NodesWithMemory(const Segment& segment) {
  NodeMask mask;
  const Mapping& m = segment.mapping();
  for (uint32_t zone = 0; zone < m.nr_zones; ++zone) {
    mask.Set(static_cast<int>(m.zone_info[zone].node));
  }
  return mask;
}

NodeMask CpusetOf(const ProcessSlot& slot) {
  const uint32_t owner = LoadRelaxed(slot.owner);
  const uint64_t word = LoadRelaxed(slot.mems.cpuset_word);
  return owner != 0 && word >> 32 == owner ? slot.mems.cpusets[word & 1]
                                           : NodeMask::All();
}

void PublishMemsLocked(Segment& segment, ProcessSlot& slot) {
  MemsAllowed& mems = slot.mems;
  const uint32_t owner = LoadRelaxed(slot.owner);
  const NodeMask cpuset = CpusetOf(slot);
  auto policy = MemoryPolicy::kLocal;
  NodeMask named;
  if (owner != 0 && LoadRelaxed(mems.policy_owner) == owner) {
    // Any process of the pool can write it.
    policy = static_cast<MemoryPolicy>(LoadRelaxed(mems.requested_policy) %
                                       kNumMemoryPolicies);
    if (policy != MemoryPolicy::kLocal) {
      named = mems.requested & cpuset & NodesWithMemory(segment);
    }
    if (!named.Any()) policy = MemoryPolicy::kLocal;
  }
  WriteMemsAllowed(mems, policy == MemoryPolicy::kBind ? named : cpuset, policy,
                   named,
                   named.Any() ? static_cast<uint32_t>(named.First()) : 0);
}

void SetCpusetLocked(Segment& segment, ProcessSlot& slot, ProcessOwner owner,
                     const NodeMask& nodes) {
  const uint64_t idle = (LoadRelaxed(slot.mems.cpuset_word) & 1) ^ 1;
  slot.mems.cpusets[idle] = nodes;
  Store(slot.mems.cpuset_word, uint64_t{owner} << 32 | idle);
  // The slot's next process may come meanwhile; it starts with all nodes.
  uint32_t published_for;
  do {
    published_for = Load(slot.owner);
    PublishMemsLocked(segment, slot);
  } while (Load(slot.owner) != published_for);
}

absl::Status SetPolicyLocked(Segment& segment, ProcessSlot& slot,
                             MemoryPolicy policy, const NodeMask& nodes) {
  MemsAllowed& mems = slot.mems;
  const NodeMask usable = NodesWithMemory(segment) & CpusetOf(slot);
  if (policy != MemoryPolicy::kLocal && !usable.Intersects(nodes)) {
    return absl::InvalidArgumentError(
        "memory policy: none of its nodes has memory of this pool that the "
        "process may use");
  }
  mems.requested = nodes;
  Store(mems.requested_policy, static_cast<uint32_t>(policy));
  Store(mems.policy_owner, LoadRelaxed(slot.owner));
  PublishMemsLocked(segment, slot);
  return absl::OkStatus();
}

}  // namespace memtuned
