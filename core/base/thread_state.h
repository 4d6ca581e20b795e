// SPDX-License-Identifier: Apache-2.0
// Whether a thread that holds a lock for too long is merely waiting for a CPU,
// or stopped. Floor 0.
#ifndef MEMTUNED_CORE_BASE_THREAD_STATE_H_
#define MEMTUNED_CORE_BASE_THREAD_STATE_H_

#include <cstdint>

namespace memtuned {

enum class ThreadState : uint8_t {
  kUnknown,   // not to be seen from here: gone, or in another PID namespace
  kRunnable,  // runs, or will as soon as a CPU is free
  kHalted,    // frozen, or asleep
  kStopped,   // by a signal, or by who traces it
};

// The thread `tid` of the process that has this pid and start time (clock
// ticks after boot, field 22 of /proc/PID/stat), so that a number that was
// used again is not mistaken. Allocates nothing. Cost: some 20 us.
ThreadState StateOfThread(uint32_t pid, uint64_t start_time_ticks,
                          uint32_t tid);

// Field 22 of /proc/PID/stat; 0 when there is no such process.
uint64_t StartTimeOf(uint32_t pid);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_THREAD_STATE_H_
