// SPDX-License-Identifier: Apache-2.0
// The figures of one torture, in one line.
#ifndef MEMTUNED_TESTS_TORTURE_REPORT_H_
#define MEMTUNED_TESTS_TORTURE_REPORT_H_

#include <cstdint>
#include <ostream>

#include "core/segment.h"
#include "tests/torture/board.h"
#include "tests/torture/options.h"
#include "tests/torture/samples.h"

namespace memtuned::torture {

struct Figures {
  double seconds = 0;
  uint64_t kills = 0;
  uint64_t spared = 0;  // because they were in a call that took too long
  uint64_t stops = 0;
  uint64_t daemon_kills = 0;
  uint64_t daemon_kills_at_start = 0;  // of those; it did not listen yet
  uint64_t storm_attaches = 0;
  uint64_t reclaimed_pages = 0;
  uint64_t stolen_ms = 0;  // by the hypervisor, all CPUs
  Totals totals;
  Samples death_times;  // from the kill to the process's end
  Samples reap_times;   // from then to its slot being free
};

// Lock takeovers come from the pool's own counters.
void PrintFigures(const Options& options, const Figures& figures,
                  const Board& board, Segment& segment, std::ostream& out);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_REPORT_H_
