// SPDX-License-Identifier: Apache-2.0
// How long a thread waits in calls of the pool: time on the clock, minus the
// time in which the kernel let others run (schedstat), minus, apart from that,
// the time in which a process was stopped that may have held what the call
// waited for, and minus, where it is long, the time in which a hypervisor let
// others run. A thread on the run queue of a CPU that is taken away has both
// subtracted: while CPUs are taken a wait may come out too short by that.
// Costs two looks at the clock a call; the kernel is asked once a millisecond
// and after calls that took longer than 5.
#ifndef MEMTUNED_TESTS_TORTURE_CALL_TIMER_H_
#define MEMTUNED_TESTS_TORTURE_CALL_TIMER_H_

#include <cstdint>

#include "tests/torture/board.h"
#include "tests/torture/options.h"

namespace memtuned::torture {

// Thread safety: its thread's only.
class CallTimer {
 public:
  // REQUIRES: constructed on the thread it times.
  CallTimer(Board& board, ThreadLine& line, uint32_t worker,
            uint64_t max_wait_ns);
  ~CallTimer();
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  void Begin();
  // `call`: for the report of one that took too long. Returns: now.
  uint64_t End(const char* call);

 private:
  // Nanoseconds this thread ever waited on a run queue.
  uint64_t RunQueueDelayNs() const;
  void Rebase();
  void Judge(const char* call, uint64_t now);

  Board& board_;
  ThreadLine& line_;
  const uint32_t worker_;
  const uint64_t max_wait_ns_;
  const int schedstat_;
  uint64_t start_ns_ = 0;
  // The thread's delay as of a moment at most a millisecond before a call.
  uint64_t base_ns_ = 0;
  uint64_t base_delay_ns_ = 0;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_CALL_TIMER_H_
