// SPDX-License-Identifier: Apache-2.0
// Fibers that are killed at a store: they stop exactly there, and others go on.
#include <gtest/gtest.h>

#include <optional>

#include "core/base/shm_lock.h"
#include "tests/core/virtual/explorer.h"

namespace memtuned {
namespace {

class KillTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  struct Death {
    uint32_t fiber = 0;
    uint64_t store = 0;  // 0: never
  };
  // `explored`: whoever is ready first goes on as long as it can.
  void Run(bool explored, const std::vector<std::function<void()>>& bodies,
           const Death& death, std::vector<uint32_t> with_it = {}) {
    env::MachineOptions options;
    options.on_store = [&, with_it](uint32_t fiber, uint64_t store) {
      if (fiber != death.fiber || store != death.store) return;
      machine_->Kill(fiber);
      for (uint32_t sibling : with_it) machine_->Kill(sibling);
      dead_ = true;
    };
    if (explored) {
      options.choose = [](const env::Choice& choice) {
        return choice.current_ready ? choice.current : choice.ready[0];
      };
    }
    dead_ = false;
    machine_.emplace(2, options);
    outcome_ = machine_->Run(bodies);
  }

  std::optional<env::VirtualMachine> machine_;
  env::VirtualMachine::Outcome outcome_;
  bool dead_ = false;
  Shared32 first_{0}, second_{0};
};

constexpr auto kFinished = env::VirtualMachine::Outcome::kFinished;
constexpr auto kStuck = env::VirtualMachine::Outcome::kStuck;

TEST_F(KillTest, StopsBeforeOrAfterEachStore) {
  const auto body = [this] {
    Store(first_, 1u);
    Bump(second_);
    uint32_t expected = 1;
    Exchange(first_, expected, 2u);
    AtomicBump(second_);
  };
  for (bool explored : {true, false}) {
    std::vector<std::pair<uint32_t, uint32_t>> seen;
    for (uint64_t n = 1;; ++n) {
      first_ = second_ = 0;
      Run(explored, {body}, {0, n});
      EXPECT_EQ(outcome_, kFinished);
      if (!machine_->Killed(0)) break;
      EXPECT_EQ(machine_->StoresOf(0), n);
      seen.emplace_back(first_.load(), second_.load());
    }

    EXPECT_EQ(machine_->StoresOf(0), 8u);
    EXPECT_EQ(
        seen,
        (std::vector<std::pair<uint32_t, uint32_t>>{
            {0, 0}, {1, 0}, {1, 0}, {1, 1}, {1, 1}, {2, 1}, {2, 1}, {2, 2}}));
  }
}

TEST_F(KillTest, DestroysNothingOnItsStack) {
  for (bool explored : {true, false}) {
    bool destroyed = false;
    const auto body = [&] {
      struct Guard {
        explicit Guard(bool& flag) : flag_(flag) {}
        ~Guard() { flag_ = true; }
        bool& flag_;
      } guard(destroyed);
      Store(first_, 1u);
    };

    Run(explored, {body}, {0, 1});
    EXPECT_FALSE(destroyed);
    Run(explored, {body}, {});
    EXPECT_TRUE(destroyed);
  }
}

TEST_F(KillTest, AWaiterLooksAgain) {
  for (bool explored : {true, false}) {
    ShmLock<LockRank::kZone> lock;
    bool saw_it = false;
    const auto victim = [&] {
      lock.Lock(1);
      env::SpendNs(5000);
      Store(first_, 1u);
      lock.Unlock();
    };
    const auto waiter = [&]() NO_THREAD_SAFETY_ANALYSIS {
      for (int round = 0; !lock.TryLock(2) && !dead_; ++round) {
        env::SpinPause(round);
      }
      saw_it = dead_;
    };

    Run(explored, {victim, waiter}, {0, 1});

    EXPECT_EQ(outcome_, kFinished);
    EXPECT_TRUE(saw_it);
    EXPECT_EQ(lock.HolderNow(), 1u);
  }
}

TEST_F(KillTest, WhoeverWaitsForTheDeadIsStuck) {
  for (bool explored : {true, false}) {
    ShmLock<LockRank::kZone> lock;
    const auto both = [&] {
      lock.Lock(env::CurrentFiber() + 1);
      Store(first_, 1u);
      lock.Unlock();
    };

    Run(explored, {both, both}, {0, 1});

    EXPECT_EQ(outcome_, kStuck);
    // In debug builds: the fibers' ranks are forgotten.
    ShmLock<LockRank::kPageset> other;
    other.Lock(3);
    other.Unlock();
    Run(explored, {both}, {1, 1});
    EXPECT_EQ(outcome_, kStuck);
  }
}

// A process dies with all its threads: one that runs, one that waits, one that
// has not begun.
TEST_F(KillTest, SiblingsDieWithIt) {
  for (bool explored : {true, false}) {
    ShmLock<LockRank::kZone> lock;
    uint32_t begun = 0, ended = 0;
    const auto body = [&] {
      ++begun;
      lock.Lock(env::CurrentFiber() + 1);
      env::SpendNs(5000);
      Store(first_, 1u);
      lock.Unlock();
      ++ended;
    };

    Run(explored, {body, body, [&] { ++ended; }}, {0, 1}, {1});

    EXPECT_EQ(outcome_, kFinished);
    EXPECT_TRUE(machine_->Killed(0) && machine_->Killed(1));
    EXPECT_FALSE(machine_->Killed(2));
    EXPECT_EQ(ended, 1u);
  }
}

TEST_F(KillTest, TheExplorerKillsInEverySchedule) {
  const auto twice = [this] {
    Store(first_, first_ + 1);
    Store(first_, first_ + 1);
  };
  uint64_t killed = 0;
  Scenario scenario;
  scenario.prepare = [this] { first_ = second_ = 0; };
  scenario.bodies = {twice, [this] { Store(second_, first_ + 0); }};
  scenario.check = [this]() -> std::string {
    return first_ == 1 && second_ < 2 ? "" : "not where it was to stop";
  };
  scenario.on_store = [&](env::VirtualMachine& machine, uint32_t fiber,
                          uint64_t store) {
    if (fiber != 0 || store != 3) return;
    machine.Kill(fiber);
    ++killed;
  };

  const Exploration found = Explorer({.preemptions = 99}).Explore(scenario);

  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(killed, found.schedules);
  // Three stretches of the victim's, the last one up to its death, among
  // three of the other's: 6 over 3.
  EXPECT_EQ(found.schedules, 20u);
}

}  // namespace
}  // namespace memtuned
