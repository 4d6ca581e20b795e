// SPDX-License-Identifier: Apache-2.0
// One verb on many daemons at once.
#ifndef MEMTUNED_CLIENT_CTL_FLEET_H_
#define MEMTUNED_CLIENT_CTL_FLEET_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/invocation.h"
#include "client/ctl/session.h"
#include "client/ctl/target_list.h"

namespace memtuned::ctl {

// Runs the verb on every target, --parallel of them at a time, and prints each
// one's result as soon as it is there: a row for a verb that changes, the
// verb's own output for one that reads, a JSON line or YAML document for
// scripts; then a summary. --timeout is for each target as a whole, so one
// that hangs is reported by then and holds up nobody.
// Returns: kDone, or kFindings when a target failed. Errors: kInvalidArgument
// for a change of several targets without --yes that nobody can be asked
// about, kCancelled when the answer was no.
absl::StatusOr<ExitCode> RunFleet(const Invocation& invocation,
                                  const std::vector<FleetTarget>& targets,
                                  const TlsFiles& tls,
                                  const Terminal& terminal);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_FLEET_H_
