// SPDX-License-Identifier: Apache-2.0
// How soon a pool is itself again after a kill, on a quiet machine.
#ifndef MEMTUNED_TESTS_TORTURE_MEASURE_H_
#define MEMTUNED_TESTS_TORTURE_MEASURE_H_

#include "tests/torture/options.h"

namespace memtuned::torture {

// From the end of a process that holds 64 MiB in blocks of a page, as its
// pidfd has it, to the pages being free again; in a pool of 4 GiB and in one
// of 256 GiB. Prints a line each.
// Returns: exit status, 1 when a median is beyond 5 ms or pages did not come
// back.
int MeasureReap(const Options& options);

// From the kill of a process that holds a lock to another's having it; for the
// zone lock, the tuning lock and a pageset's guard. Prints a line each.
// Returns: exit status, 1 when a median is beyond 1 ms or a lock stayed with
// the dead.
int MeasureTakeover(const Options& options);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_MEASURE_H_
