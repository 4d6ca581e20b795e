// SPDX-License-Identifier: Apache-2.0
// A machine as the core sees it: nodes, their memory, their CPUs, distances.
// Floor 0: plain values, no hwloc. daemon/host/topology_probe.cc makes one from
// the live machine, an hwloc XML file or a synthetic description.
#ifndef MEMTUNED_CORE_BASE_TOPOLOGY_H_
#define MEMTUNED_CORE_BASE_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace memtuned {

// Limits of what any part of memtuned accepts. Node and CPU numbers are the
// operating system's, sparse, never positions.
inline constexpr int kMaxNodeNumber = 1023;
inline constexpr int kMaxCpuNumber = 4095;
inline constexpr int kMaxNodes = 256;  // nodes present at the same time

// One NUMA node.
struct TopologyNode {
  int os_index = 0;          // 0..kMaxNodeNumber
  int64_t memory_bytes = 0;  // 0: a node without memory gets no zone
  // CPUs the kernel counts as this node's own: each CPU of the machine is in
  // exactly one node's list or in Topology::homeless_cpus. Pageset limits
  // divide by this number. Ascending.
  std::vector<int> cpus;
  // CPUs whose locality includes this node (hwloc's cpuset of the node); for
  // a CPU-less memory node these are the CPUs it is near to. A CPU of no node
  // is listed with the nodes nearest to it. May name offline CPUs. Ascending.
  std::vector<int> near_cpus;
};

// kXml: a file or directory that describes another machine.
enum class TopologySource { kLive, kXml, kSynthetic };

struct Topology {
  std::vector<TopologyNode> nodes;  // at least one, ascending os_index
  // distances[i][j] between nodes[i] and nodes[j], kernel units (10 = local).
  // Always filled: 10 and 20 where the machine does not say.
  std::vector<std::vector<int>> distances;
  // CPUs of no node; each is served by the nearest node that has memory.
  std::vector<int> homeless_cpus;
  // CPUs that may come online later but are not now. Pagesets exist for them.
  std::vector<int> offline_cpus;
  TopologySource source = TopologySource::kLive;
  std::string description;  // "live", "xml:FILE", "synthetic:node:2 pu:4"
  std::vector<std::string> warnings;  // what was odd and how it was read

  // All online CPUs, ascending.
  std::vector<int> OnlineCpus() const;
  // Highest CPU number, online or not, plus one.
  int CpuNumberEnd() const;
  // Index into nodes of the node that serves `cpu`: its own node if that has
  // memory, else the nearest by distance; a CPU in no node's cpus counts as
  // equally far from all. Ties: a node it is in the near_cpus of (the shorter
  // list first), then the lower os_index. -1 when no node has memory.
  int HomeNodeOf(int cpu) const;
  // Index of the node with this os_index, -1 if absent.
  int NodeIndexOf(int os_index) const;
  // kInvalidArgument naming the first broken rule: no node, too many nodes, a
  // duplicate or out-of-range number, lists not ascending, a CPU in two lists,
  // no online CPU, negative memory, distances not square or <= 0.
  absl::Status Validate() const;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_TOPOLOGY_H_
