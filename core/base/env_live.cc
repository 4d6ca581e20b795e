// SPDX-License-Identifier: Apache-2.0
#include "core/base/env_live.h"

namespace memtuned::env {

uint32_t CurrentCpu() {
  const uint32_t number = CurrentCpuOrNone();
  if (static_cast<int32_t>(number) >= 0) return number;
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<uint32_t>(cpu);
}

void SpinPause(int round) {
  constexpr int kSpins = 256;  // about 10 us of pauses
  if (round < kSpins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return;
  }
  sched_yield();
}

}  // namespace memtuned::env
