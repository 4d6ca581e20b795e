// SPDX-License-Identifier: Apache-2.0
// memtunectl without the process around it: a command line in, output and an
// exit status out.
#ifndef MEMTUNED_CLIENT_CTL_RUN_H_
#define MEMTUNED_CLIENT_CTL_RUN_H_

#include <string>
#include <vector>

#include "client/ctl/exit_code.h"
#include "client/ctl/session.h"

namespace memtuned::ctl {

// Runs the verb that `arguments` (without the program's name) ask for.
// Errors go to the error stream, with -o json or yaml to the output.
// Returns: the exit status.
ExitCode Run(const std::vector<std::string>& arguments,
             const Terminal& terminal);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_RUN_H_
