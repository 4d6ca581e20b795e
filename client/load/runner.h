// SPDX-License-Identifier: Apache-2.0
// A whole run: forks the processes, leads them through the phases, watches
// them, and sums up. The parent never attaches to the pool itself.
#ifndef MEMTUNED_CLIENT_LOAD_RUNNER_H_
#define MEMTUNED_CLIENT_LOAD_RUNNER_H_

#include <iosfwd>
#include <optional>
#include <string>

#include "client/load/board.h"
#include "client/load/counters.h"
#include "client/load/load_config.h"

namespace memtuned::load {

struct RunResult {
  std::string pool;
  double seconds = 0;  // from start to stop
  Totals at_stop;      // what was done in these seconds
  Totals totals;       // with the frees after the stop
  uint64_t allocated_pages = 0;
  PoolCounters counters = {};  // deltas over the run
  bool interrupted = false;

  double operations_per_second() const;
  // Zone-lock holds for each page allocated; 0 when none was.
  double lock_acquisitions_per_page() const;
};

// Progress and failed processes go to `log`.
// Blocks: until all processes have ended. SIGINT and SIGTERM stop early.
// Returns: nothing when a process failed; it was named on `log`.
std::optional<RunResult> Run(const LoadConfig& config, std::ostream& log);

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_RUNNER_H_
