// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace memtuned {
namespace {

// What follows the command in a stat file, from field 3 on: the command may
// hold anything, parentheses too.
struct StatFile {
  char text[1024];
  const char* rest = nullptr;

  explicit StatFile(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0) return;
    text[got] = '\0';
    const char* end = std::strrchr(text, ')');
    if (end != nullptr && end[1] == ' ') rest = end + 2;
  }

  uint64_t Field(int number) const {
    const char* at = rest;
    for (int i = 3; i < number && at != nullptr; ++i) {
      at = std::strchr(at, ' ');
      if (at != nullptr) ++at;
    }
    return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
  }
};

}  // namespace

uint64_t StartTimeOf(uint32_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%u/stat", pid);
  return StatFile(path).Field(22);
}

ThreadState StateOfThread(uint32_t pid, uint64_t start_time_ticks,
                          uint32_t tid) {
  if (start_time_ticks == 0 || StartTimeOf(pid) != start_time_ticks) {
    return ThreadState::kUnknown;
  }
  char path[96];
  std::snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
  const StatFile stat(path);
  if (stat.rest == nullptr) return ThreadState::kUnknown;
  switch (*stat.rest) {
    case 'R':
      return ThreadState::kRunnable;
    case 'T':
    case 't':
      return ThreadState::kStopped;
    default:
      return ThreadState::kHalted;
  }
}

}  // namespace memtuned
