// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/steal_log.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/env.h"
#include "tests/torture/machine.h"

namespace memtuned::torture {
namespace {

// The kernel counts what was taken at its next tick.
constexpr uint64_t kCountedAfterNs = 10 * kMillisecond;

}  // namespace

void StealLog::Look(uint64_t now_ns) {
  if (now_ns - last_ns_.load() < kEveryNs) return;
  PerCpuMs ms{};
  StolenMsPerCpu(ms);
  Add(now_ns, ms);
}

void StealLog::Add(uint64_t now_ns, const PerCpuMs& ms) {
  Sample& sample = samples_[nr_samples_.load() % kSamples];
  sample.time_ns.store(0);
  for (size_t cpu = 0; cpu < ms.size(); ++cpu) sample.ms[cpu].store(ms[cpu]);
  sample.time_ns.store(now_ns);
  nr_samples_.fetch_add(1);
  last_ns_.store(now_ns);
}

const StealLog::Sample* StealLog::LastUntil(uint64_t ns) const {
  const Sample* best = nullptr;
  for (const Sample& sample : samples_) {
    const uint64_t time = sample.time_ns.load();
    if (time == 0 || time > ns) continue;
    if (best == nullptr || time > best->time_ns.load()) best = &sample;
  }
  return best;
}

const StealLog::Sample* StealLog::FirstFrom(uint64_t ns) const {
  const Sample* best = nullptr;
  for (const Sample& sample : samples_) {
    const uint64_t time = sample.time_ns.load();
    if (time == 0 || time < ns) continue;
    if (best == nullptr || time < best->time_ns.load()) best = &sample;
  }
  return best;
}

uint64_t StealLog::StolenNs(uint64_t start_ns, uint64_t end_ns) const {
  const uint64_t counted_ns = end_ns + kCountedAfterNs;
  const uint64_t give_up = env::NowNs() + 100 * kMillisecond;
  while (last_ns_.load() < counted_ns && env::NowNs() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const Sample* first = LastUntil(start_ns);
  const Sample* last = FirstFrom(counted_ns);
  if (first == nullptr || last == nullptr) return 0;
  uint32_t most = 0;
  for (size_t cpu = 0; cpu < first->ms.size(); ++cpu) {
    most = std::max(most, last->ms[cpu].load() - first->ms[cpu].load());
  }
  return most * kMillisecond;
}

}  // namespace memtuned::torture
