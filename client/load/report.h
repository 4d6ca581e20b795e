// SPDX-License-Identifier: Apache-2.0
// A run in words and in JSON.
#ifndef MEMTUNED_CLIENT_LOAD_REPORT_H_
#define MEMTUNED_CLIENT_LOAD_REPORT_H_

#include <cstdint>
#include <iosfwd>

#include "client/load/load_config.h"
#include "client/load/runner.h"

namespace memtuned::load {

void PrintTable(const LoadConfig& config, const RunResult& result,
                std::ostream& out);
// One object with every figure; raw numbers, names as in README.md.
void PrintJson(const LoadConfig& config, const RunResult& result,
               std::ostream& out);

// One line: what the last second brought, and what the run cost so far.
void PrintProgress(double seconds, uint64_t operations, const Totals& totals,
                   const PoolCounters& delta, const LoadConfig& config,
                   std::ostream& log);

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_REPORT_H_
