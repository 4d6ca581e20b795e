// SPDX-License-Identifier: Apache-2.0
// One process that uses the pool until it is killed, or asked to end.
#ifndef MEMTUNED_TESTS_TORTURE_WORKER_H_
#define MEMTUNED_TESTS_TORTURE_WORKER_H_

#include <string>

#include "tests/torture/board.h"
#include "tests/torture/options.h"
#include "tests/torture/worker_process.h"

namespace memtuned::torture {

// Attaches, works in slices until SIGTERM, gives everything back, detaches.
// REQUIRES: a process just forked, with one thread.
// Returns: the exit status, 0 unless something is on the board.
int RunWorker(const Options& options, Board& board, WorkerId id,
              const std::string& socket_path);

// Attaches, takes a few blocks and detaches with some of them still held,
// again and again: its share of options.storm a second.
int RunStormWorker(const Options& options, Board& board, WorkerId id,
                   const std::string& socket_path);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_WORKER_H_
