// SPDX-License-Identifier: Apache-2.0
// Kills a process at every store of an operation, one after the other, lets
// the others go on, and looks whether the pool is sound and whole afterwards.
#ifndef MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_RUN_H_
#define MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/core/virtual/crash_pool.h"

namespace memtuned {

// An operation in which somebody dies. Bodies must be functions of the pool's
// memory, or the n-th store is not the same one twice.
struct CrashCase {
  std::string name;
  CrashPoolOptions pool = {};
  // Once, outside of fibers.
  std::function<void(CrashPool&)> prepare = {};
  // On fiber kVictim.
  std::function<void(CrashPool&)> victim;
  // What the neighbour does meanwhile, in explored runs. Empty: it takes a
  // page and gives it back.
  std::function<void(CrashPool&)> meanwhile = {};
  // What the living do afterwards. Empty: CrashPool::Work.
  std::function<void(CrashPool&)> work = {};
  // When the dead were reaped and all others have done their work: what is
  // wrong. May use fibers.
  std::function<std::string(CrashPool&)> check = {};
};

struct CrashReport {
  uint64_t points = 0;  // stores at which the victim died
  std::string effect;   // of the operation when it did not
  uint64_t trials = 0;
  uint64_t failures = 0;
  // The first of each kind, with where and how; two that differ in numbers
  // only are of a kind.
  std::map<std::string, std::string> first_failures;
};

// Thread safety: one thread, one at a time.
class CrashRun {
 public:
  explicit CrashRun(const CrashCase& crash_case);

  // Every n, or with a larger step some: the victim runs alone and dies at its
  // n-th store. Then, in each of several orders, others work and one reaps.
  CrashReport EveryStore(uint64_t step = 1);
  // Every n, and of each the schedules of victim and neighbour with at most
  // `preemptions`. One CPU: the two preempt each other on it.
  CrashReport EverySchedule(uint32_t cpus, int preemptions, uint64_t step = 1);
  // Every n, and every m: whoever takes over from the victim dies at its m-th
  // store: the reaper, or one who only works there.
  CrashReport TwoDeaths(uint64_t step = 1);

 private:
  struct Death {
    uint32_t fiber = kVictim;
    uint64_t store = 0;  // 0: never
  };
  using Order = std::vector<uint32_t>;

  void OnStore(env::VirtualMachine& machine, uint32_t fiber, uint64_t store);
  // Runs fibers one after the other. Returns: what is wrong.
  std::string Run(const Order& order, const Death& death);
  bool RunAlone(uint32_t fiber, std::function<void()> body);
  std::function<void()> BodyOf(uint32_t fiber);
  // What is wrong when all but the order's have had their turn.
  std::string GoOn(const Order& order);
  std::string Empty();
  std::string EffectOf(const CrashPool::Events& before);
  void Note(CrashReport& report, const std::string& where,
            const std::string& problem);

  const CrashCase case_;
  CrashPool pool_;
  CrashPool::Moment start_;
  env::VirtualMachine machine_;
  std::vector<std::function<void()>> bodies_;  // by fiber
  Death death_;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_VIRTUAL_CRASH_RUN_H_
