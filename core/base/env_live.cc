// SPDX-License-Identifier: Apache-2.0
#include "core/base/env_live.h"

#include <linux/membarrier.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>

#include "core/base/check.h"
#include "core/base/cpu_mask.h"

namespace memtuned::env {

uint32_t CurrentCpu() {
  const uint32_t number = CurrentCpuOrNone();
  if (static_cast<int32_t>(number) >= 0) return number;
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<uint32_t>(cpu);
}

void BarrierOnAllCpus() {
  CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0);
}

bool JoinBarriers() {
#if defined(__x86_64__)
  constexpr long kNeeded = MEMBARRIER_CMD_GLOBAL_EXPEDITED |
                           MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
  const long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return CurrentCpuOrNone() <= 0x7fffffff && known >= 0 &&
         (known & kNeeded) == kNeeded &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0,
                 0) == 0;
#else
  return false;
#endif
}

std::vector<int> OnlineCpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string text;
  std::getline(file, text);
  if (auto cpus = ParseCpuList(text); cpus.ok() && !cpus->empty()) return *cpus;
  std::vector<int> cpus(static_cast<size_t>(std::max(1, get_nprocs())));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

#ifdef MEMTUNED_CRASH_POINTS
void CountDown() {
  if (stores_to_live.fetch_sub(1) != 1) return;
  kill(getpid(), SIGKILL);
  for (;;) pause();  // of other threads, one may take the signal first
}
#endif

void SpinPause(int round) {
  constexpr int kSpins = 256;  // about 10 us of pauses
  if (round < kSpins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return;
  }
  // Many that yield to each other keep CPUs busy that would run the holder.
  constexpr int kYields = 64;
  constexpr timespec kNap{0, 50'000};
  if (round < kSpins + kYields) {
    sched_yield();
  } else {
    nanosleep(&kNap, nullptr);
  }
}

}  // namespace memtuned::env
