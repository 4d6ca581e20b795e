// SPDX-License-Identifier: Apache-2.0
// The pool after everybody left: nothing lost, nothing twice, all merged.
#ifndef MEMTUNED_TESTS_TORTURE_FINAL_CHECK_H_
#define MEMTUNED_TESTS_TORTURE_FINAL_CHECK_H_

#include "client/attach/include/memtuned/pool.h"
#include "tests/torture/board.h"
#include "tests/torture/daemon_process.h"

namespace memtuned::torture {

// Waits until only `pool`, this process's, is attached, has the daemon drain
// the pagesets, and checks the memmap and all that is made from it. What is
// wrong goes to the board.
// REQUIRES: all workers ended.
void CheckPoolAtRest(Pool& pool, DaemonProcess& daemon, Board& board);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_FINAL_CHECK_H_
