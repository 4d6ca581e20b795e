// SPDX-License-Identifier: Apache-2.0
// Whether a process is frozen by its control group, which its state does not
// tell. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_FREEZER_H_
#define MEMTUNED_DAEMON_POOL_FREEZER_H_

#include <string>

namespace memtuned {

// Reads PID/cgroup below `proc_root`, then that group's cgroup.events
// (version 2) or freezer.state (version 1) below `sys_root`/fs/cgroup. Groups
// that cannot be seen from here do not freeze.
// Cost: two small files, some 30 us.
bool IsFrozen(const std::string& proc_root, const std::string& sys_root,
              int pid);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_FREEZER_H_
