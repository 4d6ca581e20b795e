// SPDX-License-Identifier: Apache-2.0
// Faults committed on purpose (--self-test).
#ifndef MEMTUNED_TESTS_TORTURE_SABOTAGE_H_
#define MEMTUNED_TESTS_TORTURE_SABOTAGE_H_

#include "client/load/random.h"
#include "tests/torture/board.h"
#include "tests/torture/worker_process.h"

namespace memtuned::torture {

// What a run with this sabotage has to find.
Fault FaultOf(Sabotage sabotage);

// The part of the worker in slot 0: called between its slices. kLeak is the
// controller's.
void Commit(Sabotage sabotage, WorkerProcess& process, load::Random& random);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_SABOTAGE_H_
