// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>

#include <array>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/env.h"
#include "tests/torture/durations.h"
#include "tests/torture/measure.h"
#include "tests/torture/measured_pool.h"
#include "tests/torture/samples.h"
#include "tests/torture/stamp.h"

namespace memtuned::torture {
namespace {

constexpr size_t kPages = (size_t{64} << 20) / kPageBytes;
constexpr uint64_t kBackPatience = 10 * kSecond;
constexpr double kReapBarMs = 5;

// Every page is touched, as by a process that uses them.
bool TakePages(Pool& pool) {
  std::vector<void*> blocks(kPages);
  if (pool.AllocateBulk(0, blocks) != kPages) return false;
  for (void* block : blocks) *static_cast<volatile char*>(block) = 1;
  return true;
}

struct Times {
  Samples ended;  // kill to pidfd
  Samples back;   // pidfd to pages; the daemon may be sooner
  Samples kill_to_back;
};

// Returns: false when the pages did not come back.
bool MeasureReapOnce(MeasuredPool& measured, Times* times) {
  auto victim = measured.Start(TakePages);
  if (!victim) return false;
  const uint64_t full = measured.FreePages() + kPages;
  const uint64_t killed = env::NowNs();
  victim->Signal(SIGKILL);
  pollfd entry = {victim->pidfd(), POLLIN, 0};
  while (poll(&entry, 1, -1) != 1) continue;
  const uint64_t ended = env::NowNs();
  while (measured.FreePages() < full) {
    if (env::NowNs() - ended > kBackPatience) {
      std::cerr << "memtuned-torture: " << full - measured.FreePages()
                << " pages are not back after 10 s\n";
      return false;
    }
  }
  times->ended.Add(ended - killed);
  const uint64_t back = env::NowNs();
  times->back.Add(back - ended);
  times->kill_to_back.Add(back - killed);
  return measured.WaitUntilAlone();
}

// Returns: whether the median is within the bar.
bool MeasurePool(const Options& options, const char* size) {
  auto measured = MeasuredPool::Create(options, size);
  if (measured == nullptr) return false;
  Times times;
  for (uint32_t round = 0; round < options.rounds; ++round) {
    if (!MeasureReapOnce(*measured, &times)) return false;
  }
  const double median = times.back.Milliseconds(0.5);
  std::cout << absl::StrFormat(
                   "reap: pool=%s rounds=%d kill_to_end_ms_median=%.2f "
                   "kill_to_64mib_back_ms_median=%.2f "
                   "end_to_64mib_back_ms median=%.3f p99=%.3f max=%.3f "
                   "bar=%.0f %s",
                   size, options.rounds, times.ended.Milliseconds(0.5),
                   times.kill_to_back.Milliseconds(0.5), median,
                   times.back.Milliseconds(0.99), times.back.Milliseconds(1),
                   kReapBarMs, median <= kReapBarMs ? "met" : "missed")
            << std::endl;
  return median <= kReapBarMs;
}

}  // namespace

int MeasureReap(const Options& options) {
  bool met = true;
  for (const char* size : {"4GiB", "256GiB"}) {
    met = MeasurePool(options, size) && met;
  }
  return met ? 0 : 1;
}

}  // namespace memtuned::torture
