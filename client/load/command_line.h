// SPDX-License-Identifier: Apache-2.0
// From the command line to a LoadConfig; the only file with CLI11 in it.
#ifndef MEMTUNED_CLIENT_LOAD_COMMAND_LINE_H_
#define MEMTUNED_CLIENT_LOAD_COMMAND_LINE_H_

#include <optional>

#include "client/load/load_config.h"

namespace memtuned::load {

inline constexpr int kUsageError = 2;

// Prints help, version or what is wrong with an argument.
// Returns: nothing when the program is to end with *exit_code.
std::optional<LoadConfig> ParseCommandLine(int argc, char** argv,
                                           int* exit_code);

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_COMMAND_LINE_H_
