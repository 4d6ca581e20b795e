// SPDX-License-Identifier: Apache-2.0
// The rules that turn what hwloc and sysfs say of a machine into a Topology:
// whose CPU is whose, which nodes may be used, how far apart they are.
// Floor 2b; plain values, no hwloc and no files.
#ifndef MEMTUNED_DAEMON_HOST_TOPOLOGY_ASSEMBLY_H_
#define MEMTUNED_DAEMON_HOST_TOPOLOGY_ASSEMBLY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/topology.h"
#include "daemon/host/sysfs_cpus.h"
#include "daemon/host/topology_probe.h"

namespace memtuned {

// A node as hwloc reports it.
struct RawNode {
  int64_t os_index = 0;
  uint64_t memory_bytes = 0;
  std::vector<int> local_cpus;  // its locality, not the CPUs it owns
  bool allowed = true;          // this process may allocate from it
  bool special = false;  // high-bandwidth, persistent, device memory: CPUs
                         // belong to it only if no ordinary node is local
};

// A machine as hwloc and sysfs report it. Lists of CPUs are ascending.
struct RawMachine {
  TopologySource source = TopologySource::kLive;
  std::string description;
  std::vector<RawNode> nodes;      // any order
  std::vector<int> online_cpus;    // disallowed ones too
  std::vector<int> allowed_cpus;   // online or not
  std::vector<int> complete_cpus;  // all that are or may come
  // As the machine states them, any unit, 0 where it does not; empty if it
  // states none. Same order as nodes.
  std::vector<std::vector<uint64_t>> distances;
  // For a CPU in no node's local_cpus: the nodes (os_index) with memory under
  // the lowest common ancestor in the machine's tree.
  std::map<int, std::vector<int64_t>> nearest_in_tree;
  std::optional<SysfsCpus> sysfs;  // live and fsroot
  std::vector<std::string> warnings;
};

// Returns: see ProbeTopology.
// Errors: kInvalidArgument naming the description and the limit.
absl::StatusOr<Topology> AssembleTopology(const RawMachine& machine,
                                          const ProbeOptions& options);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_HOST_TOPOLOGY_ASSEMBLY_H_
