// SPDX-License-Identifier: Apache-2.0
// What a pool is created from: filled by daemon/config.cc from the --pool
// flags and the configuration file, read by PoolSubject::Create. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_POOL_CONFIG_H_
#define MEMTUNED_DAEMON_POOL_POOL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/subject.h"
#include "daemon/user_list.h"

namespace memtuned {

struct PoolConfig {
  // [a-z][a-z0-9-]{0,31}; the subject is "pools/" + name.
  std::string name;

  // Size in bytes, a multiple of the page size, at least 1 MiB. With
  // bytes_per_node it is the size on each node that has memory, else the
  // total, spread over those nodes.
  uint64_t bytes = 0;
  bool bytes_per_node = false;

  // "reserve" (default): a section is handed out only after its frames were
  // allocated, so shortage is a failed grow and never a SIGBUS in a client.
  // "lazy": frames appear on first touch; for simulated topologies and tests.
  std::string populate = "reserve";

  // The attach socket; config.cc fills it with RUNTIME_DIR/pools/NAME.sock.
  // Limited by the kernel to 107 bytes.
  std::string socket_path;

  // Permissions of the socket, 0 to 0777. Who may not write to it cannot
  // connect, whatever `users` says.
  int socket_mode = 0660;

  // Who of those may attach, and who only to read: config.cc refuses the
  // latter without the former. Re-read on SIGHUP, for processes that come.
  // Default: everyone may attach.
  PoolUsers users;

  // Where the live machine's /sys and /proc are: its online CPUs are followed,
  // and the control groups of attached processes.
  std::string sys_root = "/sys";
  std::string proc_root = "/proc";

  // Values to start with, checked against core/tunables.h; the rest are at
  // their defaults. Their origin is "config".
  std::vector<TunableAssignment> tunables;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_POOL_CONFIG_H_
