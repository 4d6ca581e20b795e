// SPDX-License-Identifier: Apache-2.0
// The torture: a real daemon, workers, and somebody who kills them.
#ifndef MEMTUNED_TESTS_TORTURE_CONTROLLER_H_
#define MEMTUNED_TESTS_TORTURE_CONTROLLER_H_

#include "tests/torture/options.h"

namespace memtuned::torture {

// Tortures for options.seconds, checks the pool, prints a line of figures on
// stdout and what was found on stderr.
// Returns: the exit status.
int Torture(const Options& options);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_CONTROLLER_H_
