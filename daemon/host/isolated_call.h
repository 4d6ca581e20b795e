// SPDX-License-Identifier: Apache-2.0
// Runs a function in a child process, so that a library which crashes, hangs,
// eats memory or is steered by the environment does so there.
// Floor 2b; knows nothing of what it runs.
#ifndef MEMTUNED_DAEMON_HOST_ISOLATED_CALL_H_
#define MEMTUNED_DAEMON_HOST_ISOLATED_CALL_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace memtuned {

// Most bytes taken from a child; one that writes more has failed.
inline constexpr size_t kMaxIsolatedOutput = size_t{64} << 20;

struct IsolatedResult {
  std::string output;       // what the function returned; whole or empty
  std::string diagnostics;  // the child's stderr, the first 4 KiB
  std::string failure;      // "crashed (signal 11)", "took over 30 s"; empty if
                            // the function returned
};

// Forks, runs `work` in the child and brings its result back. What `work`
// changes, the environment too, is not seen here. The child may use 4 GiB
// more than this process has mapped, and dumps no core.
// REQUIRES: `work` takes no lock that another thread may hold at the fork,
// starts no thread and throws nothing.
// Blocks: until the child ends, at most `deadline`.
// Errors: kInternal or kResourceExhausted when there is no pipe or process.
absl::StatusOr<IsolatedResult> CallIsolated(
    const std::function<std::string()>& work,
    std::chrono::milliseconds deadline);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_HOST_ISOLATED_CALL_H_
