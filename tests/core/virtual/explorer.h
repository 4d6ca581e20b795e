// SPDX-License-Identifier: Apache-2.0
// Runs a few bodies under every schedule with at most k preemptions: a
// depth-first search over the choices of a virtual machine, executed from the
// start each time. A preemption is a change of fibers away from one that could
// go on; changes at a wait or at an end are free. Most races need one or two.
#ifndef MEMTUNED_TESTS_CORE_VIRTUAL_EXPLORER_H_
#define MEMTUNED_TESTS_CORE_VIRTUAL_EXPLORER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace memtuned {

// What is explored. Bodies must be functions of the memory that `prepare`
// puts back, or schedules cannot be repeated.
struct Scenario {
  std::function<void()> prepare;
  std::vector<std::function<void()>> bodies;  // 2 to 8
  // After each schedule. Returns: what is wrong, "" when nothing.
  std::function<std::string()> check;
  // At each store of a fiber (MachineOptions::on_store); may Kill. May be
  // empty.
  std::function<void(env::VirtualMachine&, uint32_t fiber, uint64_t store)>
      on_store = {};
};

struct ExplorerOptions {
  uint32_t cpus = 2;
  int preemptions = 2;
  uint64_t most_schedules = 2'000'000;
};

struct Exploration {
  uint64_t schedules = 0;
  uint64_t longest_steps = 0;  // points of the longest schedule
  bool complete = false;       // every schedule within the bound was tried
  std::string failure;         // of the first schedule that failed
  std::string schedule;        // that schedule, for Replay
};

// Thread safety: one thread, one at a time.
class Explorer {
 public:
  explicit Explorer(const ExplorerOptions& options) : options_(options) {}

  // Stops at the first failure. Prints the schedule when a CHECK aborts.
  Exploration Explore(const Scenario& scenario);
  // Runs one schedule as Explore reported it: "step>fiber ..." for each
  // change of fibers that is not the default. Returns: what is wrong.
  std::string Replay(const Scenario& scenario, const std::string& schedule);

 private:
  // A point with more than one way to go on; the first is the default.
  struct Point {
    uint64_t step;
    std::array<uint8_t, 8> fibers;
    uint8_t nr_fibers;
    uint8_t chosen;
    bool current_ready;
  };

  static env::MachineOptions OptionsFor(
      env::VirtualMachine& machine, const Scenario& scenario,
      std::function<uint32_t(const env::Choice&)> choose);
  static Point PointOf(const env::Choice& choice);
  uint32_t Choose(const env::Choice& choice);
  bool NextSchedule();
  std::string RunOnce(env::VirtualMachine& machine, const Scenario& scenario);
  std::string ScheduleSoFar() const;

  const ExplorerOptions options_;
  std::vector<Point> points_;
  size_t depth_ = 0;
  int preemptions_ = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_VIRTUAL_EXPLORER_H_
