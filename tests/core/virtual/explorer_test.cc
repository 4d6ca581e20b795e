// SPDX-License-Identifier: Apache-2.0
// The explorer itself: it tries every interleaving once, finds what it should
// and repeats what it found.
#include "tests/core/virtual/explorer.h"

#include <gtest/gtest.h>

#include "core/base/shm_lock.h"

namespace memtuned {
namespace {

class ExplorerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  static std::string Fine() { return ""; }

  // `points` places to switch at.
  static std::function<void()> Points(int points) {
    return [points] {
      for (int i = 0; i < points; ++i) env::SharedLoad();
    };
  }
  static uint64_t Schedules(std::vector<std::function<void()>> bodies,
                            int preemptions) {
    const Exploration found = Explorer({.preemptions = preemptions})
                                  .Explore({[] {}, std::move(bodies), Fine});
    EXPECT_TRUE(found.complete);
    return found.schedules;
  }

  // Two bodies that read and add without a lock.
  Scenario LostUpdate() {
    const auto add = [this] { Store(counter_, Load(counter_) + 1); };
    return {[this] { counter_.store(0); },
            {add, add},
            [this]() -> std::string {
              return counter_.load() == 2 ? "" : "an update was lost";
            }};
  }

  static void Take(Shared32& lock) {
    for (int round = 0;; ++round) {
      uint32_t expected = 0;
      if (Exchange(lock, expected, 1u)) return;
      env::SpinPause(round);
    }
  }

  Shared32 counter_{0};
  Shared32 first_{0}, second_{0};
};

TEST_F(ExplorerTest, TriesEveryInterleavingOnce) {
  EXPECT_EQ(Schedules({Points(0), Points(0)}, 99), 2u);
  EXPECT_EQ(Schedules({Points(1), Points(1)}, 99), 6u);    // 4 over 2
  EXPECT_EQ(Schedules({Points(2), Points(2)}, 99), 20u);   // 6 over 3
  EXPECT_EQ(Schedules({Points(5), Points(5)}, 99), 924u);  // 12 over 6
  EXPECT_EQ(Schedules({Points(1), Points(1), Points(1)}, 99), 90u);
}

TEST_F(ExplorerTest, KeepsTheBoundOfPreemptions) {
  EXPECT_EQ(Schedules({Points(5), Points(5)}, 0), 2u);
  // Either starts; it is preempted at one of its 5 points or not at all.
  EXPECT_EQ(Schedules({Points(5), Points(5)}, 1), 12u);
}

TEST_F(ExplorerTest, FindsALostUpdateAndRepeatsIt) {
  const Scenario scenario = LostUpdate();

  const Exploration none = Explorer({.preemptions = 0}).Explore(scenario);
  const Exploration found = Explorer({.preemptions = 1}).Explore(scenario);

  EXPECT_EQ(none.failure, "");
  EXPECT_EQ(none.schedules, 2u);
  EXPECT_EQ(found.failure, "an update was lost");
  EXPECT_NE(found.schedule, "");
  EXPECT_EQ(Explorer({}).Replay(scenario, found.schedule), found.failure);
  EXPECT_EQ(Explorer({}).Replay(scenario, ""), "");
}

TEST_F(ExplorerTest, FindsADeadlock) {
  const auto both = [](Shared32& one, Shared32& other) {
    return [&] {
      Take(one);
      Take(other);
      Store(other, 0u);
      Store(one, 0u);
    };
  };

  const Exploration found =
      Explorer({.preemptions = 1})
          .Explore({[this] {
                      first_.store(0);
                      second_.store(0);
                    },
                    {both(first_, second_), both(second_, first_)},
                    Fine});

  EXPECT_EQ(found.failure, "nobody can go on");
}

// What it waits for happens between its look and its pause.
TEST_F(ExplorerTest, AWaiterThatLookedTooEarlyLooksAgain) {
  const auto wait = [this] {
    for (int round = 0;; ++round) {
      const bool there = LoadRelaxed(first_) != 0;
      env::SharedLoad();
      if (there) return;
      env::SpinPause(round);
    }
  };

  const Exploration found = Explorer({.preemptions = 3})
                                .Explore({[this] { first_.store(0); },
                                          {wait, [this] { Store(first_, 1u); }},
                                          Fine});

  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.complete);
}

TEST_F(ExplorerTest, ALockExcludesInEverySchedule) {
  ShmLock<LockRank::kZone> lock;
  const auto add = [&] {
    lock.Lock(env::CurrentFiber() + 1);
    Store(counter_, Load(counter_) + 1);
    lock.Unlock();
  };

  const Exploration found =
      Explorer({.cpus = 3, .preemptions = 3})
          .Explore({[this] { counter_.store(0); },
                    {add, add, add},
                    [this]() -> std::string {
                      return counter_.load() == 3 ? "" : "an update was lost";
                    }});

  EXPECT_EQ(found.failure, "");
  EXPECT_TRUE(found.complete);
  EXPECT_GT(found.schedules, 500u);
}

}  // namespace
}  // namespace memtuned
