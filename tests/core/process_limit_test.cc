// SPDX-License-Identifier: Apache-2.0
// Limits of what a process may hold: exact, whoever of its threads asks, and
// in force from the moment they are set.
#include "core/process_limit.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "core/allocator.h"
#include "core/slot_table.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

class ProcessLimitTest : public testing::TestWithParam<GuardKind> {
 protected:
  ProcessLimitTest()
      : pool_({.topology = TopologyBuilder("1 node, 64 cpus").Build(),
               .node_pages = {8192},
               .guard = GetParam()}),
        ours_(pool_.MakeAllocator()) {}
  ~ProcessLimitTest() override {
    EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), "");
  }

  void Limit(Allocator& allocator, std::optional<uint64_t> pages) {
    const ProcessOwner owner = allocator.owner();
    SetOwnLimit(pool_.segment(), *FindProcessSlot(pool_.segment(), owner),
                owner, pages);
  }
  void LimitAll(int64_t bytes) {
    pool_.Set(TunableId::kProcessMaxBytes, bytes);
    PublishLimits(pool_.segment());
  }
  uint64_t Held(const Allocator& allocator) {
    return HeldPages(pool_.segment(), allocator.owner());
  }
  uint64_t LimitFailures() {
    return LoadRelaxed(pool_.segment().header().failures[static_cast<size_t>(
        FailureReason::kProcessLimit)]);
  }
  // Blocks until the first failure.
  static std::vector<Pfn> Fill(Allocator& allocator, int order = 0) {
    std::vector<Pfn> blocks;
    for (Pfn pfn; (pfn = allocator.Allocate(order)).value != kNil;) {
      blocks.push_back(pfn);
    }
    return blocks;
  }
  static void FreeAll(Allocator& allocator, const std::vector<Pfn>& blocks,
                      int order = 0) {
    for (Pfn pfn : blocks) {
      EXPECT_EQ(allocator.Free(pfn, order), FreeResult::kFreed);
    }
  }

  TestSegment pool_;
  std::unique_ptr<Allocator> ours_;
};

INSTANTIATE_TEST_SUITE_P(Guards, ProcessLimitTest,
                         testing::Values(GuardKind::kClosed,
                                         GuardKind::kTrylock),
                         [](const auto& info) {
                           return info.param == GuardKind::kClosed ? "Best"
                                                                   : "Trylock";
                         });

TEST_P(ProcessLimitTest, AProcessHoldsAsMuchAsItMayAndNoMore) {
  Limit(*ours_, 100);

  std::vector<Pfn> blocks = Fill(*ours_);

  EXPECT_EQ(blocks.size(), 100u);
  EXPECT_EQ(LimitFailures(), 1u);
  EXPECT_EQ(ours_->Free(blocks.back(), 0), FreeResult::kFreed);
  EXPECT_EQ(ours_->Allocate(1).value, kNil);
  EXPECT_NE(ours_->Allocate(0).value, kNil);
  EXPECT_EQ(Held(*ours_), 100u);
}

TEST_P(ProcessLimitTest, LargeBlocksCountByTheirPages) {
  Limit(*ours_, 1500);

  EXPECT_NE(ours_->Allocate(10).value, kNil);
  EXPECT_EQ(ours_->Allocate(9).value, kNil);
  EXPECT_EQ(Fill(*ours_, 6).size(), 7u);
  EXPECT_EQ(Fill(*ours_, 0).size(), 28u);
}

TEST_P(ProcessLimitTest, OthersAreNotLimited) {
  auto theirs = pool_.MakeAllocator();
  Limit(*ours_, 10);

  EXPECT_EQ(Fill(*ours_).size(), 10u);
  EXPECT_EQ(Fill(*theirs).size(), 8192u - 10);
  EXPECT_EQ(LimitFailures(), 1u);
}

TEST_P(ProcessLimitTest, ABulkGetsWhatIsLeft) {
  Limit(*ours_, 50);
  std::vector<Pfn> blocks(64);

  EXPECT_EQ(ours_->AllocateBulk(0, blocks), 50u);

  EXPECT_EQ(Held(*ours_), 50u);
  EXPECT_EQ(LimitFailures(), 1u);
  EXPECT_EQ(ours_->FreeBulk(0, std::span(blocks).first(50)), 50u);
  EXPECT_EQ(ours_->AllocateBulk(0, std::span(blocks).first(50)), 50u);
}

TEST_P(ProcessLimitTest, AdoptingIsLimitedAndPassingBackIsNot) {
  auto theirs = pool_.MakeAllocator();
  const std::array blocks = {theirs->Allocate(0), theirs->Allocate(0)};
  for (Pfn pfn : blocks) theirs->Offer(pfn, 0);
  Limit(*ours_, 1);

  EXPECT_EQ(ours_->Adopt(blocks[0], 0), FreeResult::kFreed);
  EXPECT_EQ(ours_->Adopt(blocks[1], 0), FreeResult::kProcessLimit);
  EXPECT_EQ(Held(*theirs), 1u);
  EXPECT_EQ(ours_->FreeAdopted(blocks[1], 0), FreeResult::kFreed);

  EXPECT_EQ(Held(*ours_), 1u);
  EXPECT_EQ(Held(*theirs), 0u);
  EXPECT_EQ(ours_->Allocate(0).value, kNil);
}

TEST_P(ProcessLimitTest, WhatOthersAdoptMakesRoom) {
  auto theirs = pool_.MakeAllocator();
  Limit(*ours_, 5);
  const std::vector<Pfn> blocks = Fill(*ours_);
  ours_->Offer(blocks[0], 0);
  EXPECT_EQ(ours_->Allocate(0).value, kNil);

  EXPECT_EQ(theirs->Adopt(blocks[0], 0), FreeResult::kFreed);

  EXPECT_EQ(Fill(*ours_).size(), 1u);
}

TEST_P(ProcessLimitTest, AnIdleThreadKeepsNothingFromOthers) {
  Limit(*ours_, 1000);
  std::atomic<bool> done{false};
  std::atomic<bool> idle{false};
  std::thread hoarder([&] {
    FreeAll(*ours_, Fill(*ours_));
    idle = true;
    while (!done) std::this_thread::yield();
  });
  while (!idle) std::this_thread::yield();

  EXPECT_EQ(Fill(*ours_).size(), 1000u);

  done = true;
  hoarder.join();
}

TEST_P(ProcessLimitTest, AThreadThatEndedLeavesWhatItHolds) {
  Limit(*ours_, 20);
  std::vector<Pfn> blocks;
  std::thread([&] {
    for (int i = 0; i < 15; ++i) blocks.push_back(ours_->Allocate(0));
  }).join();

  EXPECT_EQ(Fill(*ours_).size(), 5u);

  FreeAll(*ours_, blocks);
  EXPECT_EQ(Fill(*ours_).size(), 15u);
}

TEST_P(ProcessLimitTest, ALowerLimitTakesNothingAndAllowsNothing) {
  const std::vector<Pfn> blocks = [&] {
    std::vector<Pfn> taken(200);
    ours_->AllocateBulk(0, taken);
    return taken;
  }();

  Limit(*ours_, 100);

  EXPECT_EQ(Held(*ours_), 200u);
  EXPECT_EQ(ours_->Allocate(0).value, kNil);
  for (size_t i = 0; i < 101; ++i) ours_->Free(blocks[i], 0);
  EXPECT_EQ(Fill(*ours_).size(), 1u);
  Limit(*ours_, 0);
  EXPECT_NE(ours_->Allocate(0).value, kNil);
}

TEST_P(ProcessLimitTest, ThePoolsLimitIsForAllWithoutTheirOwn) {
  auto theirs = pool_.MakeAllocator();
  Limit(*theirs, 7);

  LimitAll(10 * 4096 + 4095);

  auto later = pool_.MakeAllocator();
  EXPECT_EQ(Fill(*ours_).size(), 10u);
  EXPECT_EQ(Fill(*later).size(), 10u);
  EXPECT_EQ(Fill(*theirs).size(), 7u);
  Limit(*theirs, std::nullopt);
  EXPECT_EQ(Fill(*theirs).size(), 3u);
  Limit(*theirs, 0);
  LimitAll(0);
  EXPECT_NE(theirs->Allocate(0).value, kNil);
  EXPECT_NE(ours_->Allocate(0).value, kNil);
}

TEST_P(ProcessLimitTest, TheNextProcessInASlotIsNotLimitedByTheLastOnes) {
  const ProcessOwner owner = ours_->owner();
  Limit(*ours_, 1);
  ours_.reset();
  ReleaseProcessSlot(pool_.segment(), owner);

  ours_ = pool_.MakeAllocator();

  EXPECT_EQ(ProcessSlotOf(ours_->owner()), ProcessSlotOf(owner));
  EXPECT_NE(ours_->Allocate(3).value, kNil);
}

// What is counted between a success and its free was held at that moment.
TEST_P(ProcessLimitTest, ManyThreadsNeverHoldMoreTogether) {
  constexpr int64_t kLimit = 97;
  Limit(*ours_, kLimit);
  std::atomic<int64_t> held{0}, most{0};
  std::atomic<uint64_t> got{0}, refused{0};
  const auto work = [&](uint64_t seed) {
    std::vector<std::pair<Pfn, int>> mine;
    const auto rounds = static_cast<int>(60000 * RunScale());
    for (int i = 0; i < rounds; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const int order = static_cast<int>(seed >> 60) % 3;
      if ((seed >> 40 & 3) != 0) {
        const Pfn pfn = ours_->Allocate(order);
        if (pfn.value == kNil) {
          ++refused;
        } else {
          const int64_t now = held += int64_t{1} << order;
          for (int64_t was = most; was < now;) {
            most.compare_exchange_weak(was, now);
          }
          mine.emplace_back(pfn, order);
          ++got;
          continue;
        }
      }
      if (mine.empty()) continue;
      held -= int64_t{1} << mine.back().second;
      ours_->Free(mine.back().first, mine.back().second);
      mine.pop_back();
    }
    for (auto [pfn, order] : mine) {
      held -= int64_t{1} << order;
      ours_->Free(pfn, order);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();

  EXPECT_LE(most, kLimit);
  EXPECT_GT(most, kLimit / 2);
  EXPECT_GT(got, 1000u);
  EXPECT_GT(refused, 1000u);
  EXPECT_EQ(Held(*ours_), 0u);
  EXPECT_EQ(Fill(*ours_).size(), uint64_t{kLimit});
}

TEST_P(ProcessLimitTest, ManyThreadsThatAllFillUpHoldExactlyTheLimit) {
  for (uint64_t limit : {1, 3, 64, 501, 2000}) {
    Limit(*ours_, limit);
    std::vector<std::vector<Pfn>> blocks(4);
    std::vector<std::thread> threads;
    for (auto& mine : blocks) {
      threads.emplace_back([&] { mine = Fill(*ours_); });
    }
    for (std::thread& thread : threads) thread.join();

    EXPECT_EQ(Held(*ours_), limit);
    for (auto& mine : blocks) FreeAll(*ours_, mine);
  }
}

TEST_P(ProcessLimitTest, ALimitSetWhileThreadsAllocateHoldsFromThenOn) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> held{0};
  const auto work = [&] {
    std::vector<Pfn> mine;
    while (!stop) {
      for (int i = 0; i < 300; ++i) {
        const Pfn pfn = ours_->Allocate(0);
        if (pfn.value == kNil) break;
        ++held;
        mine.push_back(pfn);
      }
      for (Pfn pfn : mine) {
        --held;
        ours_->Free(pfn, 0);
      }
      mine.clear();
    }
  };
  constexpr int kThreads = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  int64_t worst = 0;
  for (int round = 0; round < 40; ++round) {
    const int64_t limit = round % 2 == 0 ? 128 : 64;
    Limit(*ours_, static_cast<uint64_t>(limit));
    // Until each thread gave back what it held before.
    for (int i = 0; i < 1000 && held > limit; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // Each may have been in the middle of one allocation.
    for (int i = 0; i < 2000; ++i) worst = std::max(worst, held - limit);
    Limit(*ours_, std::nullopt);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  EXPECT_LE(worst, kThreads);
  EXPECT_EQ(Held(*ours_), 0u);
}

TEST(ProcessLimitSlotlessTest, AThreadWithoutASlotIsLimitedToo) {
  TestSegment pool({.node_pages = {1024}, .nr_threads = 1});
  auto ours = pool.MakeAllocator();
  ASSERT_NE(ours->Allocate(0).value, kNil);
  const ProcessOwner owner = ours->owner();
  SetOwnLimit(pool.segment(), *FindProcessSlot(pool.segment(), owner), owner,
              10);
  size_t got = 0;

  std::thread([&] {
    while (ours->Allocate(0).value != kNil) ++got;
  }).join();

  EXPECT_EQ(got, 9u);
  EXPECT_EQ(HeldPages(pool.segment(), owner), 10u);
}

}  // namespace
}  // namespace memtuned
