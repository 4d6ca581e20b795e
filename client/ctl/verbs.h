// SPDX-License-Identifier: Apache-2.0
// The functions behind the verbs; command_table.cc says which is which.
// Each file *_verbs.cc holds one group of them.
#ifndef MEMTUNED_CLIENT_CTL_VERBS_H_
#define MEMTUNED_CLIENT_CTL_VERBS_H_

#include "absl/status/statusor.h"
#include "client/ctl/exit_code.h"

namespace memtuned::ctl {

class Session;

// topology_verbs.cc
absl::StatusOr<ExitCode> RunTopology(Session& session);
absl::StatusOr<ExitCode> RunSubjects(Session& session);
// zone_verbs.cc
absl::StatusOr<ExitCode> RunZones(Session& session);
// pageset_verbs.cc
absl::StatusOr<ExitCode> RunPagesets(Session& session);
// process_verbs.cc
absl::StatusOr<ExitCode> RunProcesses(Session& session);
// stats_verbs.cc
absl::StatusOr<ExitCode> RunStats(Session& session);
// watch_verbs.cc
absl::StatusOr<ExitCode> RunWatch(Session& session);
// tunable_verbs.cc
absl::StatusOr<ExitCode> RunTunables(Session& session);
// change_verbs.cc
absl::StatusOr<ExitCode> RunSet(Session& session);
absl::StatusOr<ExitCode> RunRecalculate(Session& session);
absl::StatusOr<ExitCode> RunDrain(Session& session);
absl::StatusOr<ExitCode> RunLimit(Session& session);
absl::StatusOr<ExitCode> RunProcess(Session& session);
// service_verbs.cc
absl::StatusOr<ExitCode> RunHealth(Session& session);
absl::StatusOr<ExitCode> RunVersion(Session& session);
// local_verbs.cc: need no daemon
absl::StatusOr<ExitCode> RunCompletion(Session& session);
absl::StatusOr<ExitCode> RunHelp(Session& session);
absl::StatusOr<ExitCode> RunComplete(Session& session);
absl::StatusOr<ExitCode> RunReference(Session& session);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_VERBS_H_
