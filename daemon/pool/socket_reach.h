// SPDX-License-Identifier: Apache-2.0
// Who is named as a user of a pool, and kept out by its socket's permissions.
// Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_SOCKET_REACH_H_
#define MEMTUNED_DAEMON_POOL_SOCKET_REACH_H_

#include <sys/stat.h>

#include <string>

#include "daemon/user_list.h"

namespace memtuned {

// "uid 1001, gid 117", "" when there is none. Of a group it is not known who
// is in the socket's as well: it counts as kept out unless it is that one.
// Blocks: on the lookup of users.
std::string KeptOutBySocket(const PoolUsers& users, const struct stat& socket);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_SOCKET_REACH_H_
