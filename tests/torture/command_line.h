// SPDX-License-Identifier: Apache-2.0
// The command line of memtuned-torture.
#ifndef MEMTUNED_TESTS_TORTURE_COMMAND_LINE_H_
#define MEMTUNED_TESTS_TORTURE_COMMAND_LINE_H_

#include <optional>

#include "tests/torture/options.h"

namespace memtuned::torture {

// Returns: nullopt when there is nothing to run (--help, a mistake); what to
// say was said, *exit_code is 0 or 2.
std::optional<Options> ParseCommandLine(int argc, char** argv, int* exit_code);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_COMMAND_LINE_H_
