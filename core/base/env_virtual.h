// SPDX-License-Identifier: Apache-2.0
// Env on a machine that does not exist: one OS thread, one fiber per body,
// virtual CPUs and clocks. The core's sources run on it unchanged, so that
// hundreds of CPUs fit a small box, a run is repeated to the last store, and
// every schedule of a few CPUs can be tried. core/base/README.md, "Env", says
// what it can and cannot show. For tests. Floor 0.
#ifndef MEMTUNED_CORE_BASE_ENV_VIRTUAL_H_
#define MEMTUNED_CORE_BASE_ENV_VIRTUAL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/env_cost.h"

#define MEMTUNED_THREAD_SANITIZER 0

namespace memtuned::env {

// Fibers, and CPUs, of one machine. An Allocator keeps a context for each, 48
// KiB in all.
inline constexpr uint32_t kMaxVirtualCpus = 1024;
inline constexpr uint32_t kNoCpu = ~0u;
// A number that no CPU has and CpuGlance never says.
inline constexpr uint32_t kNowhere = 1u << 31;

// The seam (env.h). Outside of a run all code is fiber 0 on CPU 0 and the
// hooks do nothing; but SpinPause aborts, as nobody is there to wait for.
uint32_t CurrentFiber();
uint32_t CurrentCpu();
inline uint32_t CurrentCpuOrNone() { return CurrentCpu(); }
struct CpuGlance {
  static CpuGlance OfThisThread() { return {}; }
  uint32_t Now() const { return CurrentCpu(); }
};
// Fibers change at hooks only, so that this is one step for all of them; a
// sequence that restarts has done nothing yet and need not be shown.
inline bool StoreIfHere(CpuGlance, uint32_t cpu, std::atomic<uint32_t>& word,
                        uint32_t value) {
  if (CurrentCpu() != cpu || word.load(std::memory_order_acquire) != 0) {
    return false;
  }
  word.store(value, std::memory_order_release);
  return true;
}
inline constexpr uint64_t kPatienceNs = ~uint64_t{0};  // nobody is stopped
inline void BarrierOnAllCpus() {}
inline bool JoinBarriers() { return true; }
inline std::vector<int> OnlineCpus() { return {0}; }
uint64_t NowNs();
void SpinPause(int round);
void LockEdge(const void* lock);
void SharedStore();
void SharedCount();
void SharedLoad();
void Charge(Cost cost);

// For bodies: `ns` of work that is none of the core's. Nothing in an explored
// run.
void SpendNs(uint64_t ns);

// A point at which an explored run may go on with another fiber.
struct Choice {
  uint64_t step;  // counts the points of this run, from 0
  uint32_t current;
  bool current_ready;  // false: it waits or is done, so another one must run
  std::span<const uint32_t> ready;  // at least two, ascending
};

struct MachineOptions {
  uint64_t seed = 1;  // start times and charges of a timed run
  // Empty: a timed run. Else an explored run: returns one of choice.ready.
  std::function<uint32_t(const Choice&)> choose = {};
  // Called at each SharedStore and SharedCount, before anything else happens
  // there, with the fiber and how many of them it came to, from 1. Outside of
  // the run: hooks do nothing inside. May call VirtualMachine::Kill: then the
  // point is where a process crashes.
  std::function<void(uint32_t fiber, uint64_t store)> on_store = {};
};

// Runs bodies as fibers that take turns on the calling thread.
//
// Timed: the fiber with the smallest clock runs; fibers change at lock edges
// only. Clocks advance by what locks and Charge cost; who waits for a lock is
// parked and goes on behind the clock of whoever passes the lock next.
// Explored: fibers may change at every lock edge, shared store and shared
// load, as `choose` says; a fiber that spins is not ready before another one
// has made a step.
//
// Invariants: one run at a time in the process; a run is a function of bodies,
// memory, seed and choices, not of the real machine.
// Thread safety: one thread.
class VirtualMachine {
 public:
  enum class Outcome {
    kFinished,
    // Nobody can go on, or an explored run made kMostSteps, as when two wait
    // for each other and store while they do. The fibers are abandoned
    // where they stand: what lies on their stacks is not destroyed.
    kStuck,
  };
  static constexpr uint64_t kMostSteps = 1'000'000;

  // False under sanitizers, which do not know of the stacks.
  static bool Supported();

  // REQUIRES: cpus 1..kMaxVirtualCpus.
  explicit VirtualMachine(uint32_t cpus, MachineOptions options = {});
  ~VirtualMachine();
  VirtualMachine(const VirtualMachine&) = delete;
  VirtualMachine& operator=(const VirtualMachine&) = delete;

  // Fiber i runs bodies[i] on CPU i modulo cpus: more bodies than CPUs are
  // threads that preempt each other.
  // REQUIRES: Supported(); at most kMaxVirtualCpus bodies.
  Outcome Run(const std::vector<std::function<void()>>& bodies);

  // Ends a fiber, the running one or another, as SIGKILL would: its stack is
  // abandoned, nothing on it is destroyed, and its locks stay as they are. One
  // that ended, or has no body, is left alone.
  // REQUIRES: called by on_store.
  void Kill(uint32_t fiber);
  // Of the last run: whether the fiber was killed, and how many stores it came
  // to. REQUIRES: it had a body.
  bool Killed(uint32_t fiber) const {
    return fibers_[fiber].state == State::kKilled;
  }
  uint64_t StoresOf(uint32_t fiber) const { return fibers_[fiber].stores; }

  // Of the last run. The digest covers each change of fibers and its time.
  uint64_t digest() const { return digest_; }
  uint64_t steps() const { return step_; }
  uint64_t switches() const { return switches_; }
  // The latest clock of any fiber.
  uint64_t end_ns() const { return end_ns_; }

 private:
  friend struct Hooks;

  enum class State : uint8_t { kReady, kSpinning, kParked, kDone, kKilled };
  struct Fiber {
    void* context = nullptr;  // of the fiber while another one runs
    const std::function<void()>* body = nullptr;
    uint64_t clock_ns = 0;
    uint64_t stores = 0;
    uint64_t switches_at_spin = ~uint64_t{0};
    const void* last_edge = nullptr;
    State state = State::kReady;
  };
  struct LockTraffic {
    uint32_t last_fiber = ~0u;
    std::deque<uint32_t> parked;  // fibers, first come first
  };
  struct Turn {
    uint64_t clock_ns;
    uint32_t fiber;
    bool operator>(const Turn& other) const {
      return clock_ns != other.clock_ns ? clock_ns > other.clock_ns
                                        : fiber > other.fiber;
    }
  };

  static void EnterFiber();
  void PrepareFiber(uint32_t number);
  bool explores() const { return static_cast<bool>(options_.choose); }
  Fiber& current() { return fibers_[current_]; }
  void Become(Fiber& fiber, State state);

  void OnEdge(const void* lock);
  void OnStore();
  void OnAccess();
  void OnSpin();
  void OnCharge(Cost cost);
  void OnSpend(uint64_t ns);
  void OnDone();

  void StepExplored();
  void LeaveExplored();  // the current fiber waits or is done
  uint32_t NextExplored(bool current_ready);
  void WakeSpinners();

  void QueueTurn(uint32_t fiber);
  bool NobodyQueued();
  void YieldTimed();
  void LeaveTimed();
  bool WakeEverybody();
  void WakeFirst(LockTraffic& traffic);

  void SwitchTo(uint32_t fiber);
  void LeaveForGood();
  void BackToCaller();

  const uint32_t cpus_;
  const MachineOptions options_;
  std::vector<char*> stacks_;
  std::vector<Fiber> fibers_;
  std::vector<uint32_t> ready_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<Turn>> turns_;
  std::unordered_map<const void*, LockTraffic> locks_;
  std::minstd_rand random_;
  void* caller_ = nullptr;
  Outcome outcome_ = Outcome::kFinished;
  uint32_t current_ = 0;
  uint32_t spinning_ = 0;
  uint32_t nr_ready_ = 0;
  uint64_t step_ = 0;
  uint64_t step_of_rescue_ = 0;
  uint64_t switches_ = 0;
  uint64_t digest_ = 0;
  uint64_t end_ns_ = 0;
};

}  // namespace memtuned::env

#endif  // MEMTUNED_CORE_BASE_ENV_VIRTUAL_H_
