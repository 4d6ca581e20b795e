// SPDX-License-Identifier: Apache-2.0
// Makes a Topology from the live machine, a hwloc XML file, a synthetic
// description or a captured tree of /sys and /proc. The one user of hwloc.
// Floor 2b. See daemon/host/README.md for the rules of odd machines.
#ifndef MEMTUNED_DAEMON_HOST_TOPOLOGY_PROBE_H_
#define MEMTUNED_DAEMON_HOST_TOPOLOGY_PROBE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/topology.h"

namespace memtuned {

// Most memory that one node may state.
inline constexpr int64_t kMaxNodeMemoryBytes = int64_t{1} << 52;

struct ProbeOptions {
  // Keep nodes and CPUs that the machine's cpuset (cgroup) forbids to this
  // process. Off: they are left out, each kind named in a warning, and the
  // CPUs go to Topology::offline_cpus, for others may run there.
  bool include_disallowed = false;
  // Bytes that the one node is taken to have when no node states any and
  // neither does meminfo. Whoever sizes a pool may put the pool's size here.
  // 1..kMaxNodeMemoryBytes.
  int64_t assumed_memory_bytes = int64_t{1} << 30;
  // Where the live machine's /sys and /proc are; "live" only, and only for
  // what hwloc does not read itself.
  std::string sys_root = "/sys";
  std::string proc_root = "/proc";
};

// `spec` is one of
//   live            this machine
//   xml:FILE        hwloc XML of version 1 or 2
//   synthetic:DESC  as in lstopo -i: "node:2 pu:128",
//                   "node:2(memory=256GiB) pu:128",
//                   "[numa(memory=256GiB)] pack:2 core:64 pu:2",
//                   "node:2(indexes=0,1000) pu:4"; 1 GiB a node if not stated
//   fsroot:DIR      a copy of a Linux machine's /sys and /proc
// Returns: a topology that Validate()s and has at least one node with memory;
// what was odd about the machine is in its warnings.
// Errors: kInvalidArgument (not readable as what it claims to be, beyond the
// limits of topology.h), kNotFound, kPermissionDenied; each names the spec.
// Forks: hwloc runs in a child process, for it is steered by environment
// variables, writes to stderr, and crashes on some damaged XML; a crash is an
// error here, and what it writes becomes a warning or part of the error.
// Blocks: on files and the child: libhwloc takes 0.1 s to 2 s for 4096 CPUs,
// and is stopped after 60 s.
absl::StatusOr<Topology> ProbeTopology(const std::string& spec,
                                       const ProbeOptions& options = {});

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_HOST_TOPOLOGY_PROBE_H_
