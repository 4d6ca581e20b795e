// SPDX-License-Identifier: Apache-2.0
// The order in which zones are tried for a node: its own first, then by
// distance, ties spread over the nodes that have them. Pure. Floor 1.
#ifndef MEMTUNED_CORE_MM_ZONELIST_H_
#define MEMTUNED_CORE_MM_ZONELIST_H_

#include <cstdint>
#include <span>
#include <vector>

namespace memtuned {

struct ZonelistNode {
  int os_index = 0;
  bool has_memory = false;
  bool has_cpus = false;
};

// Node order for every node, positions into `nodes`; only nodes with memory
// appear. The own node first if it has memory; then repeatedly the unused
// one with the smallest
//   (distance + (1 if its number is below mine) + (1 if it has CPUs)) x 1024
//   + load,
// where the first node of each new distance group gains one load. Source: the
// kernel's documented node order.
//   distances[from][to], positions as in `nodes`.
std::vector<std::vector<int>> ComputeNodeOrders(
    std::span<const ZonelistNode> nodes,
    const std::vector<std::vector<int>>& distances);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_ZONELIST_H_
