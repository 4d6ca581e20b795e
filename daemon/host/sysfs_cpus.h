// SPDX-License-Identifier: Apache-2.0
// What a kernel's own files say of CPUs and nodes: which CPUs may ever exist,
// and which node it counts each one to. hwloc keeps neither.
// Floor 2b; reads under a given root, so that captures serve as machines.
#ifndef MEMTUNED_DAEMON_HOST_SYSFS_CPUS_H_
#define MEMTUNED_DAEMON_HOST_SYSFS_CPUS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace memtuned {

// Files that are missing leave their field empty; those that cannot be read
// or understood add a warning as well.
struct SysfsCpus {
  std::vector<int> possible;  // ascending; 0..kMaxCpuNumber
  // By node number: the CPUs the kernel counts as the node's own. A node that
  // the kernel lists without CPUs is there, with an empty list.
  std::map<int, std::vector<int>> own_by_node;
  int64_t memory_bytes = 0;  // MemTotal of the whole machine
  std::vector<std::string> warnings;
};

// Reads SYS/devices/system/{cpu,node} and PROC/meminfo.
// Blocks: on a few small files a node.
SysfsCpus ReadSysfsCpus(const std::string& sys_root,
                        const std::string& proc_root);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_HOST_SYSFS_CPUS_H_
