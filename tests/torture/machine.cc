// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/machine.h"

#include <unistd.h>

#include <fstream>
#include <string>

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

bool TellsRunQueueDelay() {
  std::ifstream file("/proc/thread-self/schedstat");
  uint64_t ran_ns = 0, waited_ns = 0;
  return static_cast<bool>(file >> ran_ns >> waited_ns) && ran_ns != 0;
}

}  // namespace memtuned::torture
