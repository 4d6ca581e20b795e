// SPDX-License-Identifier: Apache-2.0
// From the command line to the exit code: configuration, signals, the daemon.
// main.cc adds the pools, tests add fakes. Floor 5.
#ifndef MEMTUNED_DAEMON_RUN_H_
#define MEMTUNED_DAEMON_RUN_H_

#include "daemon/daemon.h"

namespace memtuned {

// Exit codes.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // something went wrong at run time
inline constexpr int kExitUsage = 2;   // command line or configuration

// SIGTERM and SIGINT stop in order, a second one at once; SIGHUP reloads.
// REQUIRES: no other thread runs.
int RunDaemon(int argc, const char* const* argv, const PoolFactory& make_pool);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RUN_H_
