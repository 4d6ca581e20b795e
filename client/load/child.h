// SPDX-License-Identifier: Apache-2.0
// One process of the load: attaches, runs its worker threads, follows the
// phases on the board. Process 0 also reads the pool's counters for all.
#ifndef MEMTUNED_CLIENT_LOAD_CHILD_H_
#define MEMTUNED_CLIENT_LOAD_CHILD_H_

#include "client/load/board.h"
#include "client/load/load_config.h"

namespace memtuned::load {

// REQUIRES: a process just forked, with one thread.
// Returns: the exit status; what went wrong is on the board.
int RunChild(const LoadConfig& config, uint32_t process, SharedState& state);

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_CHILD_H_
