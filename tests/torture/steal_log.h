// SPDX-License-Identifier: Apache-2.0
// When a hypervisor gave CPUs of this machine to others, and for how long: a
// run queue that the kernel's delay does not tell of. In shared memory, written
// by one process.
#ifndef MEMTUNED_TESTS_TORTURE_STEAL_LOG_H_
#define MEMTUNED_TESTS_TORTURE_STEAL_LOG_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <tuple>

#include "tests/torture/durations.h"

namespace memtuned::torture {

// Kept for the newest seconds only, and of the first 64 CPUs.
class StealLog {
 public:
  static constexpr uint64_t kEveryNs = 5 * kMillisecond;

  // Writes down what the kernel says, unless it did less than kEveryNs ago.
  // Cost: some 30 us.
  void Look(uint64_t now_ns);

  // What was taken between two moments from the CPU that lost most, in the
  // kernel's ticks of 10 ms. Waits until the log goes far enough beyond the
  // later one, at most 100 ms.
  uint64_t StolenNs(uint64_t start_ns, uint64_t end_ns) const;

  // For tests, and Look.
  using PerCpuMs = std::array<uint32_t, 64>;
  void Add(uint64_t now_ns, const PerCpuMs& ms);

 private:
  static constexpr uint32_t kSamples = 1024;
  struct Sample {
    std::atomic<uint64_t> time_ns;  // 0: none, or being written
    std::array<std::atomic<uint32_t>, std::tuple_size_v<PerCpuMs>> ms;
  };
  // The newest until `ns`, or the oldest from then on; nullptr: none.
  const Sample* LastUntil(uint64_t ns) const;
  const Sample* FirstFrom(uint64_t ns) const;

  std::atomic<uint64_t> last_ns_;
  std::atomic<uint32_t> nr_samples_;
  std::array<Sample, kSamples> samples_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_STEAL_LOG_H_
