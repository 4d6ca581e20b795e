// SPDX-License-Identifier: Apache-2.0
#include "tests/core/virtual/crash_run.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/core/virtual/explorer.h"

namespace memtuned {
namespace {

// Who goes on once the victim is dead, one after the other.
const std::vector<std::vector<uint32_t>> kOrders = {
    {kSuccessor, kNeighbour, kReaper},
    {kNeighbour, kSuccessor, kReaper},
    {kReaper, kSuccessor, kNeighbour},
    {kWatcher, kNeighbour, kSuccessor, kReaper},
};

std::string NameOf(const std::vector<uint32_t>& order) {
  constexpr const char* kNames[] = {"victim", "neighbour", "successor",
                                    "reaper", "heir",      "sibling",
                                    "watcher"};
  return absl::StrJoin(order, ", ", [&](std::string* out, uint32_t fiber) {
    out->append(kNames[fiber]);
  });
}

}  // namespace

CrashRun::CrashRun(const CrashCase& crash_case)
    : case_(crash_case),
      pool_(crash_case.pool),
      machine_(2, {.choose =
                       [](const env::Choice& c) {
                         return c.current_ready ? c.current : c.ready[0];
                       },
                   .on_store =
                       [this](uint32_t fiber, uint64_t store) {
                         OnStore(machine_, fiber, store);
                       }}),
      bodies_(kCrashFibers) {
  if (case_.prepare) case_.prepare(pool_);
  CHECK(pool_.complaint().empty());
  start_ = pool_.Save();
  for (uint32_t fiber = 0; fiber < kCrashFibers; ++fiber) {
    bodies_[fiber] = BodyOf(fiber);
  }
}

std::function<void()> CrashRun::BodyOf(uint32_t fiber) {
  switch (fiber) {
    case kVictim:
      return [this] { case_.victim(pool_); };
    case kReaper:
    case kHeir:
      return [this] { pool_.ReapTheDead(); };
    case kWatcher:
      return [this] { pool_.Recover(); };
    default:
      return [this] { case_.work ? case_.work(pool_) : pool_.Work(); };
  }
}

void CrashRun::OnStore(env::VirtualMachine& machine, uint32_t fiber,
                       uint64_t store) {
  if (fiber == death_.fiber && store == death_.store) pool_.Die(machine, fiber);
}

bool CrashRun::RunAlone(uint32_t fiber, std::function<void()> body) {
  std::vector<std::function<void()>> bodies(fiber + 1, [] {});
  bodies[fiber] = std::move(body);
  return machine_.Run(bodies) == env::VirtualMachine::Outcome::kFinished;
}

std::string CrashRun::Run(const Order& order, const Death& death) {
  death_ = death;
  bool finished = true;
  for (uint32_t fiber : order) {
    finished = finished && RunAlone(fiber, bodies_[fiber]);
  }
  death_ = {};
  return finished ? "" : "who comes after it cannot go on";
}

std::string CrashRun::GoOn(const Order& order) {
  std::string problem = Run(order, {});
  if (problem.empty() && case_.check) problem = case_.check(pool_);
  if (problem.empty()) problem = pool_.Problem();
  return problem.empty() ? Empty() : problem;
}

// All that the living have is given back; the last of them drains.
std::string CrashRun::Empty() {
  uint32_t last = 0;
  for (uint32_t process = 0; process < kCrashProcesses; ++process) {
    if (pool_.Dead(process)) continue;
    last = process;
    if (!RunAlone(process, [this] { pool_.GiveAll(); })) return "cannot free";
  }
  if (!RunAlone(last, [this] { pool_.DrainAll(); })) return "cannot drain";
  const std::string problem = pool_.ProblemWhenEmpty();
  return problem.empty() ? "" : "all given back: " + problem;
}

void CrashRun::Note(CrashReport& report, const std::string& where,
                    const std::string& problem) {
  ++report.trials;
  if (problem.empty()) return;
  ++report.failures;
  std::string kind;
  std::copy_if(problem.begin(), problem.end(), std::back_inserter(kind),
               [](char c) { return c < '0' || c > '9'; });
  report.first_failures.try_emplace(
      kind, absl::StrCat(case_.name, ": ", where, ": ", problem));
}

// Pages, holds and blocks that were counted; then the lists as they are.
std::string CrashRun::EffectOf(const CrashPool::Events& before) {
  std::string effect;
  const CrashPool::Events now = pool_.EventsNow();
  for (const auto& [name, count] : now.counts) {
    const uint64_t more = count - before.counts.at(name);
    if (more != 0) absl::StrAppend(&effect, name, " ", more, ", ");
  }
  if (!effect.empty()) effect.resize(effect.size() - 2);
  if (now.lists != before.lists) absl::StrAppend(&effect, ";", now.lists);
  return effect;
}

CrashReport CrashRun::EveryStore(uint64_t step) {
  CrashReport report;
  const CrashPool::Events before = pool_.EventsNow();
  for (uint64_t n = 1;; n += step) {
    pool_.PutBack(start_);
    std::string problem = Run({kVictim}, {kVictim, n});
    const bool killed = machine_.Killed(kVictim);
    if (problem.empty() && killed) ++report.points;
    if (!killed) {  // it ends
      report.effect = EffectOf(before);
      pool_.MarkDead(kVictim);
    }
    const CrashPool::Moment death = pool_.Save();
    for (const Order& order : kOrders) {
      pool_.PutBack(death);
      Note(report, absl::StrCat("dies at store ", n, ", then ", NameOf(order)),
           problem.empty() ? GoOn(order) : problem);
    }
    if (!killed) return report;
  }
}

CrashReport CrashRun::TwoDeaths(uint64_t step) {
  CrashReport report;
  for (uint64_t n = 1;; n += step) {
    pool_.PutBack(start_);
    Run({kVictim}, {kVictim, n});
    if (!machine_.Killed(kVictim)) return report;
    ++report.points;
    const CrashPool::Moment death = pool_.Save();
    for (uint32_t second : {kReaper, kSuccessor, kNeighbour}) {
      const uint32_t reaper = second == kReaper ? kHeir : kReaper;
      for (uint64_t m = 1;; ++m) {
        pool_.PutBack(death);
        std::string problem = Run({second}, {second, m});
        const bool killed = machine_.Killed(second);
        if (!killed && problem.empty()) break;
        Order order = {reaper, kSuccessor, kNeighbour};
        std::erase(order, second);
        if (problem.empty()) problem = GoOn(order);
        Note(report,
             absl::StrCat("dies at store ", n, ", ", NameOf({second}),
                          " dies at its store ", m),
             problem);
        if (!killed) break;
      }
    }
  }
}

CrashReport CrashRun::EverySchedule(uint32_t cpus, int preemptions,
                                    uint64_t step) {
  CrashReport report;
  for (uint64_t n = 1;; n += step) {
    bool reached = false;
    Scenario scenario;
    scenario.prepare = [&] { pool_.PutBack(start_); };
    scenario.bodies = {bodies_[kVictim], [&] {
                         if (case_.meanwhile) return case_.meanwhile(pool_);
                         pool_.Take(0);
                         pool_.Give(0);
                       }};
    scenario.on_store = [&](env::VirtualMachine& machine, uint32_t fiber,
                            uint64_t store) {
      if (fiber != kVictim || store != n) return;
      reached = true;
      pool_.Die(machine, fiber);
    };
    scenario.check = [&] {
      if (!pool_.Dead(kVictim)) pool_.MarkDead(kVictim);
      return GoOn({kReaper, kSuccessor});
    };
    const ExplorerOptions options{.cpus = cpus, .preemptions = preemptions};
    const Exploration found = Explorer(options).Explore(scenario);
    report.trials += found.schedules;
    if (reached) ++report.points;
    if (!found.failure.empty()) {
      --report.trials;
      Note(report,
           absl::StrCat("dies at store ", n, " of schedule \"", found.schedule,
                        "\""),
           found.failure);
    }
    if (!reached) return report;
  }
}

}  // namespace memtuned
