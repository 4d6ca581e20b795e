// SPDX-License-Identifier: Apache-2.0
// What the processes of one run say to each other: the phase, what each worker
// did, the pool's counters, why somebody failed. Shared memory that is made
// before the processes are.
#ifndef MEMTUNED_CLIENT_LOAD_BOARD_H_
#define MEMTUNED_CLIENT_LOAD_BOARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "client/load/counters.h"
#include "client/load/load_config.h"
#include "client/load/ring.h"

namespace memtuned::load {

// Set by the parent, in this order; followed by the children.
enum class Phase : uint32_t {
  kAttaching,
  kCounting,  // everybody is attached; process 0 reads the counters
  kRunning,
  kStopping,  // workers free what they hold
  kCountingAgain,
  kFinished,
};

// One worker's line. Written by it, read by anybody.
struct alignas(64) WorkerCounts {
  std::atomic<uint64_t> allocations;
  std::atomic<uint64_t> frees;
  std::atomic<uint64_t> failures;

  void Allocated() { Add(allocations); }
  void Freed() { Add(frees); }
  void Failed() { Add(failures); }

 private:
  static void Add(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1,
                  std::memory_order_relaxed);
  }
};

struct Totals {
  uint64_t allocations = 0, frees = 0, failures = 0;
  uint64_t operations() const { return allocations + frees; }
};

struct Board {
  std::atomic<Phase> phase;
  std::atomic<uint32_t> attached;  // processes
  std::atomic<uint32_t> finished;  // processes whose workers are done
  std::atomic<uint32_t> counted;   // how often `counters` is complete
  SharedCounters counters;         // written by process 0
  std::array<char, 48> pool_name;  // written by process 0 before kCounting
  std::array<WorkerCounts, kMostWorkers> workers;
  // Why a process failed, NUL-terminated. Its own until it has ended.
  std::array<std::array<char, 600>, kMostProcesses> errors;

  Totals Sum(uint32_t nr_workers) const;
  void SetError(uint32_t process, const std::string& text);
};

// A board and rings, mapped before fork().
class SharedState {
 public:
  // Returns: nullptr when there is no memory for it, with errno set.
  static std::unique_ptr<SharedState> Create(const LoadConfig& config);
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  Board& board() { return *board_; }
  // The ring of a pair of workers.
  Ring& ring(uint32_t pair) {
    return *reinterpret_cast<Ring*>(rings_ + pair * ring_bytes_);
  }

 private:
  SharedState() = default;

  void* memory_ = nullptr;
  size_t bytes_ = 0;
  Board* board_ = nullptr;
  char* rings_ = nullptr;
  size_t ring_bytes_ = 0;
};

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_BOARD_H_
