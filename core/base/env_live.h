// SPDX-License-Identifier: Apache-2.0
// Env on the real machine. Everything here is inline and, but for SpinPause
// and NowNs, free of system calls. Floor 0.
#ifndef MEMTUNED_CORE_BASE_ENV_LIVE_H_
#define MEMTUNED_CORE_BASE_ENV_LIVE_H_

#include <sched.h>
#include <sys/rseq.h>
#include <time.h>

#include <cstdint>

#include "core/base/env_cost.h"

namespace memtuned::env {

// Cost: one load from the rseq area, which the kernel keeps current
// (sched_getcpu() takes 2.5 ns more). Returns: kNoCpu for a thread without a
// registered area; CurrentCpu() then asks the kernel.
inline constexpr uint32_t kNoCpu = ~0u;
class CpuGlance {
 public:
  static CpuGlance OfThisThread() {
    const auto* area = reinterpret_cast<const volatile struct rseq*>(
        static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
    return CpuGlance(&area->cpu_id);
  }
  constexpr CpuGlance() = default;
  // Negative, that is, huge when not registered.
  uint32_t Now() const { return *word_; }

 private:
  explicit CpuGlance(const volatile uint32_t* word) : word_(word) {}
  const volatile uint32_t* word_ = nullptr;
};
inline uint32_t CurrentCpuOrNone() { return CpuGlance::OfThisThread().Now(); }
uint32_t CurrentCpu();

inline uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// Spins first, then gives the CPU away: the holder may be preempted, and a
// FIFO queue would convoy behind it.
void SpinPause(int round);

inline void LockEdge(const void*) {}
inline void SharedStore() {}
inline void SharedLoad() {}
inline void Charge(Cost) {}

}  // namespace memtuned::env

#endif  // MEMTUNED_CORE_BASE_ENV_LIVE_H_
