// SPDX-License-Identifier: Apache-2.0
#include "core/mm/zonelist.h"

#include <limits>

namespace memtuned {
namespace {

// The next node for `from`'s list, -1 when all are used.
int NextBestNode(std::span<const ZonelistNode> nodes,
                 const std::vector<std::vector<int>>& distances, size_t from,
                 const std::vector<bool>& used,
                 const std::vector<int64_t>& load) {
  int best = -1;
  int64_t best_key = std::numeric_limits<int64_t>::max();
  for (size_t to = 0; to < nodes.size(); ++to) {
    if (used[to] || !nodes[to].has_memory) continue;
    if (to == from) return static_cast<int>(to);
    int64_t distance = distances[from][to];
    distance += nodes[to].os_index < nodes[from].os_index ? 1 : 0;
    distance += nodes[to].has_cpus ? 1 : 0;
    const int64_t key = distance * 1024 + load[to];
    if (key < best_key) {
      best_key = key;
      best = static_cast<int>(to);
    }
  }
  return best;
}

}  // namespace

std::vector<std::vector<int>> ComputeNodeOrders(
    std::span<const ZonelistNode> nodes,
    const std::vector<std::vector<int>>& distances) {
  std::vector<std::vector<int>> orders(nodes.size());
  std::vector<int64_t> load(nodes.size(), 0);
  for (size_t from = 0; from < nodes.size(); ++from) {
    std::vector<bool> used(nodes.size(), false);
    int previous_distance = -1;
    for (;;) {
      const int next = NextBestNode(nodes, distances, from, used, load);
      if (next < 0) break;
      const auto n = static_cast<size_t>(next);
      if (distances[from][n] != previous_distance) load[n] += 1;
      previous_distance = distances[from][n];
      used[n] = true;
      orders[from].push_back(next);
    }
  }
  return orders;
}

}  // namespace memtuned
