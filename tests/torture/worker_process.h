// SPDX-License-Identifier: Apache-2.0
// What the threads of one worker share while it is attached.
#ifndef MEMTUNED_TESTS_TORTURE_WORKER_PROCESS_H_
#define MEMTUNED_TESTS_TORTURE_WORKER_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "client/attach/include/memtuned/pool.h"
#include "client/load/board.h"
#include "tests/torture/board.h"
#include "tests/torture/held_blocks.h"
#include "tests/torture/options.h"

namespace memtuned::torture {

// Who a worker is: its place on the board, and a number no other ever has.
struct WorkerId {
  uint32_t slot = 0;
  uint32_t serial = 0;
};

struct WorkerProcess {
  WorkerProcess(const Options& o, Board& b, WorkerId i, Pool& p);

  WorkerSlot& line() const { return board.workers[id.slot]; }
  uint64_t pool_pages() const { return pool.bytes() / kPageBytes; }
  // What the pool's memmap says of the page at an offset.
  std::string DescribePage(uint64_t offset) const;
  // Reports a fault and ends the process.
  [[noreturn]] void Fail(Fault fault, const std::string& text) const;

  const Options& options;
  Board& board;
  const WorkerId id;
  const uint64_t owner;  // in stamps
  Pool& pool;
  HeldBlocks held;
};

// Exit status of a worker that reported a fault.
inline constexpr int kFaultExit = 3;

// One stretch of work in one shape; its threads end it when it is time.
struct Slice {
  explicit Slice(uint64_t end) : end_ns(end) {}
  bool running() const {
    return phase.load(std::memory_order_relaxed) == load::Phase::kRunning;
  }

  std::atomic<load::Phase> phase{load::Phase::kRunning};
  const uint64_t end_ns;
  bool whole_stamps = false;
};

// Set once this process was asked to end: a worker, or the controller.
extern std::atomic<bool> g_asked_to_end;
void AskToEnd(int signal);  // a signal handler

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_WORKER_PROCESS_H_
