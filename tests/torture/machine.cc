// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/machine.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/base/env.h"
#include "tests/torture/durations.h"

namespace memtuned::torture {

namespace {

// The eighth number of a line of /proc/stat, in ticks.
uint64_t ReadStolenMs(std::istream& line) {
  uint64_t ticks = 0;
  for (int i = 0; i < 8 && line >> ticks; ++i) continue;
  return line ? ticks * 1000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace

uint64_t StolenMs() {
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  return ReadStolenMs(file);
}

void StolenMsPerCpu(std::span<uint32_t> ms) {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);  // all of them
  while (std::getline(file, line) && line.starts_with("cpu")) {
    std::istringstream numbers(line.substr(3));
    size_t cpu = 0;
    if (!(numbers >> cpu) || cpu >= ms.size()) continue;
    ms[cpu] = static_cast<uint32_t>(ReadStolenMs(numbers));
  }
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
