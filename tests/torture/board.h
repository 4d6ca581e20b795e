// SPDX-License-Identifier: Apache-2.0
// What the controller and its workers know of each other, in shared memory: a
// killed worker loses nothing it wrote here.
#ifndef MEMTUNED_TESTS_TORTURE_BOARD_H_
#define MEMTUNED_TESTS_TORTURE_BOARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/torture/options.h"
#include "tests/torture/steal_log.h"

namespace memtuned::torture {

// What can be wrong with a pool, or with those who serve and use it.
enum class Fault : uint32_t {
  kStamp,    // a page in two hands
  kRefused,  // the pool refused what it must not
  kWait,     // a call took too long
  kHang,     // a call did not end, or nobody got anywhere
  kAttach,   // attaching failed
  kDeath,    // somebody ended that nobody killed
  kReap,     // a dead process's slot was not freed
  kLost,     // pages, blocks or structure wrong at the end
};
const char* FaultName(Fault fault);

enum class WorkerState : uint32_t {
  kAttaching,
  kRunning,
  kLeaving,   // gave everything back, is detaching
  kFinished,  // detached; ends
};

inline constexpr uint32_t kThreadsOfAWorker = 2;

// One thread's line. Written by it; what it counted stays when it is killed
// and another worker goes on here.
struct alignas(64) ThreadLine {
  std::atomic<uint64_t> call_start_ns;  // 0: not in a call of the pool
  std::atomic<uint32_t> tid;
  std::atomic<uint64_t> allocations, frees, failures;
  std::atomic<uint64_t> adoptions, missed_offers;
  std::atomic<uint64_t> attaches, refused_attaches;
  std::atomic<uint64_t> longest_call_ns;  // as the clock has it
  // Minus run-queue delay, stops, and what a hypervisor took.
  std::atomic<uint64_t> longest_wait_ns;
  std::atomic<uint64_t> longest_behind_stopped_ns;  // minus run-queue delay
};

// A counter with one writer.
inline void Count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by,
                std::memory_order_relaxed);
}
inline void Raise(std::atomic<uint64_t>& maximum, uint64_t value) {
  if (value > maximum.load(std::memory_order_relaxed)) {
    maximum.store(value, std::memory_order_relaxed);
  }
}

struct WorkerSlot {
  std::atomic<WorkerState> state;
  std::array<ThreadLine, kThreadsOfAWorker> threads;
};

// From SIGSTOP to SIGCONT of one worker. Written by the controller.
struct StopInterval {
  std::atomic<uint64_t> start_ns;  // 0: none yet
  std::atomic<uint64_t> end_ns;    // 0: it lasts
  std::atomic<uint32_t> worker;
};

struct FaultNote {
  std::atomic<uint32_t> complete;
  Fault fault;
  std::array<char, 1000> text;  // NUL-terminated
};

struct Totals {
  uint64_t allocations = 0, frees = 0, failures = 0, adoptions = 0,
           missed_offers = 0, attaches = 0, refused_attaches = 0,
           longest_call_ns = 0, longest_wait_ns = 0,
           longest_behind_stopped_ns = 0;
  uint64_t operations() const { return allocations + frees; }
};

class Board {
 public:
  static constexpr uint32_t kMailboxes = 64;
  static constexpr uint32_t kStopIntervals = 256;

  // Shared with processes forked later. Aborts without memory.
  static Board* Create();

  // Thread safety: any process; notes beyond the first 32 are only counted.
  void Report(Fault fault, const std::string& text);
  uint32_t nr_faults() const { return nr_faults_.load(); }
  bool Has(Fault fault) const;
  std::vector<std::string> FaultTexts() const;

  // Of workers `first` to `last` - 1.
  Totals Sum(uint32_t first = 0, uint32_t last = kMostWorkers) const;

  // The newest interval; older ones are overwritten in turn.
  void BeginStop(uint32_t worker, uint64_t now_ns);
  void EndStop(uint64_t now_ns);
  // How long others than `worker` were stopped between two moments, at most
  // one of them at a time. *was_stopped: whether `worker` itself was.
  uint64_t StoppedNs(uint32_t worker, uint64_t start_ns, uint64_t end_ns,
                     bool* was_stopped) const;

  std::array<WorkerSlot, kMostWorkers> workers;
  // Blocks on offer between workers, see exchange.h.
  std::array<std::atomic<uint64_t>, kMailboxes> mailboxes;
  StealLog steal_log;

 private:
  std::atomic<uint32_t> nr_faults_;
  std::array<FaultNote, 32> notes_;
  std::atomic<uint32_t> nr_stops_;
  std::array<StopInterval, kStopIntervals> stops_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_BOARD_H_
