// SPDX-License-Identifier: Apache-2.0
#include "tests/core/virtual/explorer.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sstream>

#include "core/base/check.h"

namespace memtuned {
namespace {

std::function<std::string()> schedule_at_abort;

// Best effort: the process dies anyway.
void PrintSchedule(int) {
  std::fprintf(stderr, "schedule: \"%s\"\n", schedule_at_abort().c_str());
}

class AbortReport {
 public:
  explicit AbortReport(std::function<std::string()> schedule) {
    schedule_at_abort = std::move(schedule);
    before_ = std::signal(SIGABRT, PrintSchedule);
  }
  ~AbortReport() { std::signal(SIGABRT, before_); }
  AbortReport(const AbortReport&) = delete;
  AbortReport& operator=(const AbortReport&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

env::MachineOptions Explorer::OptionsFor(
    env::VirtualMachine& machine, const Scenario& scenario,
    std::function<uint32_t(const env::Choice&)> choose) {
  env::MachineOptions options{.choose = std::move(choose)};
  if (scenario.on_store) {
    options.on_store = [&](uint32_t fiber, uint64_t store) {
      scenario.on_store(machine, fiber, store);
    };
  }
  return options;
}

Explorer::Point Explorer::PointOf(const env::Choice& choice) {
  Point point{choice.step, {}, 0, 0, choice.current_ready};
  CHECK(choice.ready.size() <= point.fibers.size());
  const auto add = [&](uint32_t fiber) {
    point.fibers[point.nr_fibers++] = static_cast<uint8_t>(fiber);
  };
  if (choice.current_ready) add(choice.current);
  for (uint32_t fiber : choice.ready) {
    if (!choice.current_ready || fiber != choice.current) add(fiber);
  }
  return point;
}

uint32_t Explorer::Choose(const env::Choice& choice) {
  if (choice.current_ready && preemptions_ == options_.preemptions) {
    return choice.current;
  }
  if (depth_ == points_.size()) points_.push_back(PointOf(choice));
  const Point& point = points_[depth_++];
  CHECK_WITH(point.step == choice.step, point.step, choice.step);
  if (point.current_ready && point.chosen != 0) ++preemptions_;
  return point.fibers[point.chosen];
}

bool Explorer::NextSchedule() {
  while (!points_.empty()) {
    Point& last = points_.back();
    if (++last.chosen < last.nr_fibers) return true;
    points_.pop_back();
  }
  return false;
}

std::string Explorer::RunOnce(env::VirtualMachine& machine,
                              const Scenario& scenario) {
  scenario.prepare();
  depth_ = 0;
  preemptions_ = 0;
  if (machine.Run(scenario.bodies) == env::VirtualMachine::Outcome::kStuck) {
    return "nobody can go on";
  }
  return scenario.check();
}

std::string Explorer::ScheduleSoFar() const {
  std::ostringstream out;
  for (const Point& point : points_) {
    if (point.chosen == 0) continue;
    out << (out.tellp() == 0 ? "" : " ") << point.step << '>'
        << int{point.fibers[point.chosen]};
  }
  return out.str();
}

Exploration Explorer::Explore(const Scenario& scenario) {
  const AbortReport report([this] { return ScheduleSoFar(); });
  env::VirtualMachine machine(
      options_.cpus,
      OptionsFor(machine, scenario,
                 [this](const env::Choice& choice) { return Choose(choice); }));
  Exploration result;
  points_.clear();
  do {
    const std::string problem = RunOnce(machine, scenario);
    ++result.schedules;
    result.longest_steps = std::max(result.longest_steps, machine.steps());
    if (!problem.empty()) {
      result.failure = problem;
      result.schedule = ScheduleSoFar();
      return result;
    }
    if (result.schedules == options_.most_schedules) return result;
  } while (NextSchedule());
  result.complete = true;
  return result;
}

std::string Explorer::Replay(const Scenario& scenario,
                             const std::string& schedule) {
  std::map<uint64_t, uint32_t> changes;
  std::istringstream in(schedule);
  uint64_t step;
  char arrow;
  for (uint32_t fiber; in >> step >> arrow >> fiber;) changes[step] = fiber;
  env::VirtualMachine machine(
      options_.cpus,
      OptionsFor(machine, scenario, [&](const env::Choice& choice) {
        const auto it = changes.find(choice.step);
        if (it != changes.end()) return it->second;
        return choice.current_ready ? choice.current : choice.ready[0];
      }));
  return RunOnce(machine, scenario);
}

}  // namespace memtuned
