// SPDX-License-Identifier: Apache-2.0
// Help texts, written from the tables.
#ifndef MEMTUNED_CLIENT_CTL_HELP_H_
#define MEMTUNED_CLIENT_CTL_HELP_H_

#include <string>

#include "client/ctl/command_table.h"

namespace memtuned::ctl {

// Verbs, options, environment, exit codes, examples.
std::string GeneralHelp();
// Usage, options and examples of one verb.
std::string CommandHelp(const CommandDef& command);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_HELP_H_
