// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/report.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/snapshot.h"

namespace memtuned::torture {
namespace {

double Milliseconds(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string Takeovers(Segment& segment) {
  std::string text;
  for (const auto& [lock, count] :
       ReadSnapshot(segment, false).lock_takeovers) {
    absl::StrAppend(&text, " takeovers_", lock, "=", count);
  }
  return text;
}

}  // namespace

void PrintFigures(const Options& options, const Figures& figures,
                  const Board& board, Segment& segment, std::ostream& out) {
  const Totals& totals = figures.totals;
  std::string text = absl::StrCat(
      "torture: seed=", options.seed,
      absl::StrFormat(" seconds=%.1f", figures.seconds),
      " workers=", options.workers, " kills=", figures.kills,
      " spared=", figures.spared, " operations=", totals.operations(),
      " failed_allocations=", totals.failures, " adoptions=", totals.adoptions,
      " missed_offers=", totals.missed_offers, " attaches=", totals.attaches);
  if (totals.refused_attaches != 0) {
    absl::StrAppend(&text, " refused_attaches=", totals.refused_attaches);
  }
  if (options.stop) absl::StrAppend(&text, " stops=", figures.stops);
  if (options.kill_daemon) {
    absl::StrAppend(&text, " daemon_kills=", figures.daemon_kills,
                    " daemon_kills_at_start=", figures.daemon_kills_at_start);
  }
  if (options.storm != 0 && figures.seconds > 0) {
    absl::StrAppend(
        &text, absl::StrFormat(" storm_attaches_per_second=%.0f",
                               static_cast<double>(figures.storm_attaches) /
                                   figures.seconds));
  }
  absl::StrAppend(&text, Takeovers(segment),
                  " reclaimed_pages=", figures.reclaimed_pages,
                  absl::StrFormat(" longest_call_ms=%.1f longest_wait_ms=%.1f",
                                  Milliseconds(totals.longest_call_ns),
                                  Milliseconds(totals.longest_wait_ns)));
  if (options.stop) {
    absl::StrAppend(
        &text, absl::StrFormat(" longest_wait_behind_stopped_ms=%.1f",
                               Milliseconds(totals.longest_behind_stopped_ns)));
  }
  out << text
      << absl::StrFormat(" reap_ms_median=%.2f reap_ms_p99=%.2f",
                         figures.reap_times.Milliseconds(0.5),
                         figures.reap_times.Milliseconds(0.99))
      << absl::StrFormat(" death_ms_median=%.2f death_ms_p99=%.2f",
                         figures.death_times.Milliseconds(0.5),
                         figures.death_times.Milliseconds(0.99))
      << " stolen_ms=" << figures.stolen_ms << " faults=" << board.nr_faults()
      << std::endl;
}

}  // namespace memtuned::torture
