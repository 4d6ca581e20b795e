// SPDX-License-Identifier: Apache-2.0
#include "core/base/biased_lock.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/test_segment.h"

namespace memtuned {
namespace {

class BiasedLockTest : public testing::TestWithParam<GuardKind> {
 protected:
  void SetUp() override {
    if (GetParam() == GuardKind::kBiased && !env::JoinBarriers()) {
      GTEST_SKIP() << "no restartable sequences or barriers on this machine";
    }
  }

  GuardSeat SeatHere() const {
    return {GetParam(), env::CurrentCpu(), env::CpuGlance::OfThisThread()};
  }

  // After a TryLock whose success only the test's macros know of.
  void Unlock() NO_THREAD_SAFETY_ANALYSIS { lock_.Unlock(); }

  BiasedLock<LockRank::kPageset> lock_;
  uint64_t inside_ = 0;  // by whoever holds the lock
};

TEST_P(BiasedLockTest, IsFreeAtFirstAndAfterUnlock) {
  const PinnedToOneCpu pinned(0);
  EXPECT_EQ(lock_.HolderNow(), 0u);

  ASSERT_TRUE(lock_.TryLock(7, SeatHere()));
  EXPECT_EQ(lock_.HolderNow(), 7u);
  EXPECT_FALSE(lock_.TryLock(8, SeatHere()));
  Unlock();

  EXPECT_EQ(lock_.HolderNow(), 0u);
  ASSERT_TRUE(lock_.TryLock(8, SeatHere()));
  Unlock();
}

TEST_P(BiasedLockTest, AVisitorKeepsItsCpuOut) {
  const PinnedToOneCpu pinned(0);
  lock_.LockFromAnywhere(9, GetParam());
  EXPECT_EQ(lock_.HolderNow(), 9u);

  EXPECT_FALSE(lock_.TryLock(7, SeatHere()));

  lock_.UnlockFromAnywhere(GetParam());
  EXPECT_TRUE(lock_.TryLock(7, SeatHere()));
  Unlock();
}

TEST_P(BiasedLockTest, MissesFromAnotherSeatOrNone) {
  const PinnedToOneCpu pinned(0);
  if (GetParam() != GuardKind::kBiased) GTEST_SKIP() << "any CPU will do";
  GuardSeat elsewhere = SeatHere();
  elsewhere.cpu += 1;
  EXPECT_FALSE(lock_.TryLock(7, elsewhere));
  elsewhere.cpu = env::kNowhere;
  EXPECT_FALSE(lock_.TryLock(7, elsewhere));
  EXPECT_FALSE(lock_.TryLock(7, GuardSeat{}));
  EXPECT_EQ(lock_.HolderNow(), 0u);
}

// Threads of the lock's CPU that preempt each other, one that is moved
// about, and visitors from both CPUs: nobody is inside together.
TEST_P(BiasedLockTest, KeepsEverybodyOutButOne) {
  constexpr int kLocals = 3;
  int cpu = 0;
  {
    const PinnedToOneCpu pinned(0);
    cpu = static_cast<int>(env::CurrentCpu());
  }
  std::atomic<uint64_t> entered{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kLocals; ++i) {
    threads.emplace_back([&, i] {
      // The last one wanders: it holds the lock on both CPUs.
      std::unique_ptr<PinnedToOneCpu> pinned;
      if (i < kLocals - 1) pinned = std::make_unique<PinnedToOneCpu>(0);
      uint64_t mine = 0;
      for (uint64_t round = 0; !over; ++round) {
        GuardSeat seat = SeatHere();
        if (GetParam() == GuardKind::kBiased) {
          seat.cpu = static_cast<uint32_t>(cpu);
        }
        if (!lock_.TryLock(static_cast<ThreadOwner>(i + 1), seat)) {
          sched_yield();
          continue;
        }
        ++inside_;
        ++mine;
        if (i == kLocals - 1 && round % 64 == 0) sched_yield();
        lock_.Unlock();
      }
      entered += mine;
    });
  }
  threads.emplace_back([&] {
    uint64_t mine = 0;
    while (!over) {
      lock_.LockFromAnywhere(100, GetParam());
      ++inside_;
      ++mine;
      lock_.UnlockFromAnywhere(GetParam());
    }
    entered += mine;
    EXPECT_GT(mine, 0u);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inside_, entered.load());
}

INSTANTIATE_TEST_SUITE_P(Kinds, BiasedLockTest,
                         testing::Values(GuardKind::kTrylock,
                                         GuardKind::kBiased),
                         [](const auto& info) {
                           return info.param == GuardKind::kBiased ? "Biased"
                                                                   : "Trylock";
                         });

}  // namespace
}  // namespace memtuned
