// SPDX-License-Identifier: Apache-2.0
// What memtunectl's exit status says. One table: the process's status, the
// text in --help and the README all come from it.
#ifndef MEMTUNED_CLIENT_CTL_EXIT_CODE_H_
#define MEMTUNED_CLIENT_CTL_EXIT_CODE_H_

#include <span>

#include "absl/status/status.h"

namespace memtuned::ctl {

enum class ExitCode {
  kDone = 0,
  kFindings = 1,
  kUsage = 2,
  kUnreachable = 3,
  kDenied = 4,
  kRefused = 5,
  kPartial = 6,
  kInternal = 7,
};

// One row of the table.
struct ExitCodeDef {
  ExitCode code;
  const char* name;     // "unreachable"
  const char* meaning;  // one sentence for people
};

// All rows, ascending.
std::span<const ExitCodeDef> ExitCodeTable();
const ExitCodeDef& GetExitCode(ExitCode code);

// The exit status of a command that ended with `status`, by its code; a
// daemon that is reachable but has no writer counts as refused.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_EXIT_CODE_H_
