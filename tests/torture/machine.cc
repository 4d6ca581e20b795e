// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/machine.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "core/base/env.h"
#include "tests/torture/durations.h"

namespace memtuned::torture {

// The eighth number of the first line, in ticks.
uint64_t StolenMs() {
  std::ifstream file("/proc/stat");
  std::string name;
  uint64_t ticks = 0;
  file >> name;
  for (int i = 0; i < 8 && file >> ticks; ++i) continue;
  return file ? ticks * 1000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)) : 0;
}

// A kernel that does not count says that nobody ever ran; one that does may
// say so of a thread that is new.
bool TellsRunQueueDelay() {
  const uint64_t give_up = env::NowNs() + 100 * kMillisecond;
  do {
    std::ifstream file("/proc/thread-self/schedstat");
    uint64_t ran_ns = 0, waited_ns = 0;
    if (!(file >> ran_ns >> waited_ns)) return false;
    if (ran_ns != 0) return true;
  } while (env::NowNs() < give_up);
  return false;
}

}  // namespace memtuned::torture
