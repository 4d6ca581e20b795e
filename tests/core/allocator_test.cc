// SPDX-License-Identifier: Apache-2.0
// The front door: what it refuses, what it counts, how blocks change hands,
// what a forked child may do.
#include "core/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "core/slot_table.h"
#include "core/stats.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

class AllocatorTest : public testing::Test {
 protected:
  AllocatorTest()
      : pool_({.node_pages = {kPagesPerSection + 64}}),
        ours_(pool_.MakeAllocator()),
        theirs_(pool_.MakeAllocator()) {}

  ~AllocatorTest() override {
    EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), "");
  }
  uint64_t Refused(FreeResult why) {
    return LoadRelaxed(
        pool_.segment().header().refused_frees[static_cast<size_t>(why)]);
  }
  uint64_t Failed(FailureReason why) {
    return LoadRelaxed(
        pool_.segment().header().failures[static_cast<size_t>(why)]);
  }
  uint64_t Held(const Allocator& allocator) {
    return HeldPages(pool_.segment(), allocator.owner());
  }

  TestSegment pool_;
  std::unique_ptr<Allocator> ours_, theirs_;
};

TEST_F(AllocatorTest, GivesAlignedBlocksOfEveryOrderAndTakesThemBack) {
  for (int order = 0; order <= kMaxOrder; ++order) {
    const Pfn pfn = ours_->Allocate(order);
    ASSERT_NE(pfn.value, kNil);
    EXPECT_EQ(pfn.value & ((1u << order) - 1), 0u);
    EXPECT_EQ(Held(*ours_), uint64_t{1} << order);
    EXPECT_EQ(ours_->Free(pfn, order), FreeResult::kFreed);
    EXPECT_EQ(Held(*ours_), 0u);
  }
}

TEST_F(AllocatorTest, RefusesADoubleFree) {
  for (int order : {0, 3, 5, 9, 10}) {
    const Pfn pfn = ours_->Allocate(order);
    ours_->Free(pfn, order);

    EXPECT_EQ(ours_->Free(pfn, order), FreeResult::kNotAllocated);
  }
  EXPECT_EQ(Refused(FreeResult::kNotAllocated), 5u);
}

TEST_F(AllocatorTest, BulkFreesWhatIsItsOwnOnce) {
  ours_->Free(ours_->Allocate(0), 0);
  const Pfn a = ours_->Allocate(0), b = ours_->Allocate(0);
  const Pfn foreign = theirs_->Allocate(0), larger = ours_->Allocate(1);

  EXPECT_EQ(ours_->FreeBulk(0, std::array{a, a, foreign, larger, b, a}), 2u);

  EXPECT_EQ(Held(*ours_), 2u);
  EXPECT_EQ(Refused(FreeResult::kNotAllocated), 2u);
  EXPECT_EQ(Refused(FreeResult::kForeign), 1u);
  EXPECT_EQ(Refused(FreeResult::kWrongOrder), 1u);
}

TEST_F(AllocatorTest, RefusesAWildFree) {
  const Pfn block = ours_->Allocate(4);

  EXPECT_EQ(ours_->Free(Pfn{block.value + 1}, 0), FreeResult::kNotAllocated);
  EXPECT_EQ(ours_->Free(Pfn{block.value + 8}, 3), FreeResult::kNotAllocated);
  EXPECT_EQ(ours_->Free(Pfn{block.value + 1}, 1), FreeResult::kOutOfRange);
  EXPECT_EQ(ours_->Free(Pfn{pool_.mapping().nr_pages}, 0),
            FreeResult::kOutOfRange);
  EXPECT_EQ(ours_->Free(Pfn{kNil}, 0), FreeResult::kOutOfRange);
  EXPECT_EQ(ours_->Free(block, -1), FreeResult::kOutOfRange);
  EXPECT_EQ(ours_->Free(block, 11), FreeResult::kOutOfRange);
  EXPECT_EQ(ours_->Free(Pfn{kPagesPerSection - 1}, 0),
            FreeResult::kNotAllocated);

  EXPECT_EQ(Refused(FreeResult::kOutOfRange), 5u);
  EXPECT_EQ(Refused(FreeResult::kNotAllocated), 3u);
  EXPECT_EQ(Held(*ours_), 16u);
}

TEST_F(AllocatorTest, RefusesTheWrongOrder) {
  const Pfn block = ours_->Allocate(3);

  for (int order : {0, 1, 2}) {
    EXPECT_EQ(ours_->Free(block, order), FreeResult::kWrongOrder);
  }
  EXPECT_EQ(Refused(FreeResult::kWrongOrder), 3u);
  EXPECT_EQ(ours_->Free(block, 3), FreeResult::kFreed);
}

TEST_F(AllocatorTest, RefusesAnotherProcesssBlock) {
  for (int order : {0, 7}) {
    const Pfn block = ours_->Allocate(order);
    EXPECT_EQ(theirs_->Free(block, order), FreeResult::kForeign);
    EXPECT_EQ(ours_->Free(block, order), FreeResult::kFreed);
  }
  EXPECT_EQ(Refused(FreeResult::kForeign), 2u);
}

TEST_F(AllocatorTest, RefusesInvalidOrders) {
  for (int order : {-1, 11, 1 << 20, -(1 << 30)}) {
    EXPECT_EQ(ours_->Allocate(order).value, kNil);
  }
  EXPECT_EQ(Failed(FailureReason::kInvalidOrder), 4u);
}

TEST_F(AllocatorTest, OneOfTwoRacingFreesWins) {
  constexpr int kRounds = 3000;
  std::atomic<int> freed{0};
  for (int order : {0, 5}) {
    freed = 0;
    std::vector<Pfn> blocks;
    std::atomic<int> at[2] = {-1, -1};
    for (int i = 0; i < kRounds; ++i) {
      const Pfn pfn = ours_->Allocate(order);
      if (pfn.value == kNil) break;
      blocks.push_back(pfn);
    }
    const auto race = [&](int me) {
      for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
        at[me] = i;
        for (int spin = 0; at[1 - me] < i && spin < 1000; ++spin) {
        }
        if (ours_->Free(blocks[static_cast<size_t>(i)], order) ==
            FreeResult::kFreed) {
          ++freed;
        }
      }
    };
    std::thread other(race, 1);
    race(0);
    other.join();
    EXPECT_EQ(freed, static_cast<int>(blocks.size()));
  }
  EXPECT_EQ(Held(*ours_), 0u);
}

// As when a process is stopped, or killed, in the middle of an operation.
TEST_F(AllocatorTest, AnothersBlockIsFreedWhileAStrangerHoldsAGuard) {
  const PinnedToOneCpu pinned(0);
  Pfn pfn{kNil};
  std::thread([&] { pfn = ours_->Allocate(0); }).join();
  ASSERT_NE(pfn.value, kNil);
  const GuardKind kind = pool_.mapping().guard;
  PagesetShared& pageset = pool_.PagesetHere();
  ThreadContext stranger;
  TakeThreadSlot(pool_.segment(), theirs_->owner(), &stranger);
  pageset.guard.LockFromAnywhere(stranger.owner, kind);

  EXPECT_EQ(ours_->Free(pfn, 0), FreeResult::kFreed);

  pageset.guard.UnlockFromAnywhere(kind);
  EXPECT_EQ(Held(*ours_), 0u);
}

TEST_F(AllocatorTest, AnOfferChangesHandsOnce) {
  const Pfn block = ours_->Allocate(2);
  EXPECT_EQ(ours_->Offer(block, 2), FreeResult::kFreed);

  EXPECT_EQ(theirs_->Adopt(block, 2), FreeResult::kFreed);

  EXPECT_EQ(Held(*ours_), 0u);
  EXPECT_EQ(Held(*theirs_), 4u);
  EXPECT_EQ(ours_->Free(block, 2), FreeResult::kForeign);
  EXPECT_EQ(theirs_->Adopt(block, 2), FreeResult::kNotAllocated);
  EXPECT_EQ(theirs_->Free(block, 2), FreeResult::kFreed);
}

TEST_F(AllocatorTest, AnOfferToOneProcessIsForThatOne) {
  auto third = pool_.MakeAllocator();
  const Pfn block = ours_->Allocate(0);
  ours_->Offer(block, 0, theirs_->owner());

  EXPECT_EQ(third->Adopt(block, 0), FreeResult::kForeign);
  EXPECT_EQ(theirs_->Adopt(block, 1), FreeResult::kWrongOrder);
  EXPECT_EQ(theirs_->FreeAdopted(block, 0), FreeResult::kFreed);
  EXPECT_EQ(Held(*theirs_), 0u);
}

TEST_F(AllocatorTest, ARevokedOfferIsGone) {
  const Pfn block = ours_->Allocate(0);
  ours_->Offer(block, 0);

  EXPECT_EQ(ours_->Revoke(block, 0), FreeResult::kFreed);

  EXPECT_EQ(theirs_->Adopt(block, 0), FreeResult::kNotAllocated);
  EXPECT_EQ(ours_->Revoke(block, 0), FreeResult::kNotAllocated);
  EXPECT_EQ(ours_->Free(block, 0), FreeResult::kFreed);
}

TEST_F(AllocatorTest, TheOffererMayFreeWhatNobodyTook) {
  for (int order : {0, 6}) {
    const Pfn block = ours_->Allocate(order);
    ours_->Offer(block, order);

    EXPECT_EQ(ours_->Free(block, order), FreeResult::kFreed);
    EXPECT_EQ(theirs_->Adopt(block, order), FreeResult::kNotAllocated);
  }
}

TEST_F(AllocatorTest, RefusesToOfferWhatItDoesNotHold) {
  const Pfn block = theirs_->Allocate(0);

  EXPECT_EQ(ours_->Offer(block, 0), FreeResult::kForeign);
  theirs_->Free(block, 0);
  EXPECT_EQ(ours_->Offer(block, 0), FreeResult::kNotAllocated);
  EXPECT_EQ(ours_->Adopt(Pfn{kNil}, 0), FreeResult::kOutOfRange);
}

TEST_F(AllocatorTest, OneOfManyAdoptersWins) {
  std::vector<std::unique_ptr<Allocator>> others;
  for (int i = 0; i < 3; ++i) others.push_back(pool_.MakeAllocator());
  constexpr int kBlocks = 1000;
  std::vector<Pfn> blocks;
  for (int i = 0; i < kBlocks; ++i) {
    blocks.push_back(ours_->Allocate(0));
    ours_->Offer(blocks.back(), 0);
  }
  std::atomic<int> adopted{0};
  std::vector<std::thread> threads;
  for (auto& other : others) {
    threads.emplace_back([&, allocator = other.get()] {
      for (Pfn pfn : blocks) {
        if (allocator->Adopt(pfn, 0) == FreeResult::kFreed) ++adopted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(adopted, kBlocks);
  EXPECT_EQ(Held(*ours_), 0u);
  uint64_t held = 0;
  for (auto& other : others) held += Held(*other);
  EXPECT_EQ(held, uint64_t{kBlocks});
}

TEST_F(AllocatorTest, ALabelStaysUntilTheBlockIsFreed) {
  const Pfn block = ours_->Allocate(1);

  EXPECT_EQ(ours_->SetLabel(block, 1, 7), FreeResult::kFreed);

  EXPECT_TRUE(
      PageWord(LoadRelaxed(pool_.mapping().page(block).word)).labelled());
  EXPECT_EQ(ours_->Free(block, 1), FreeResult::kFreed);
  EXPECT_FALSE(
      PageWord(LoadRelaxed(pool_.mapping().page(block).word)).labelled());
  EXPECT_EQ(ours_->SetLabel(block, 1, 7), FreeResult::kNotAllocated);
}

TEST_F(AllocatorTest, FailsWhenThePoolIsUsedUpAndRecovers) {
  std::vector<Pfn> blocks;
  for (Pfn pfn; (pfn = ours_->Allocate(0)).value != kNil;) {
    blocks.push_back(pfn);
  }

  EXPECT_EQ(blocks.size(), kPagesPerSection + 64);
  EXPECT_EQ(Failed(FailureReason::kNoMemory), 1u);
  EXPECT_EQ(ours_->Free(blocks.back(), 0), FreeResult::kFreed);
  EXPECT_NE(theirs_->Allocate(0).value, kNil);
}

TEST_F(AllocatorTest, FetchesWhatOtherCpusHoldBeforeItFails) {
  std::vector<Pfn> blocks(kPagesPerSection + 64);
  ASSERT_EQ(ours_->AllocateBulk(0, blocks), blocks.size());
  // Parked in this CPU's pageset as order 0; an order-10 block needs them all.
  for (Pfn pfn : blocks) ours_->Free(pfn, 0);

  EXPECT_NE(ours_->Allocate(kMaxOrder).value, kNil);
}

TEST_F(AllocatorTest, AForkedChildOwnsNothing) {
  const Pfn block = ours_->Allocate(0);

  const pid_t child = fork();
  if (child == 0) {
    const bool as_told = ours_->detached() &&
                         ours_->Allocate(0).value == kNil &&
                         ours_->Free(block, 0) == FreeResult::kNotAttached &&
                         ours_->Offer(block, 0) == FreeResult::kNotAttached &&
                         ours_->Adopt(block, 0) == FreeResult::kNotAttached;
    _exit(as_told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(Failed(FailureReason::kNotAttached), 1u);
  EXPECT_EQ(ours_->Free(block, 0), FreeResult::kFreed);
}

TEST(AllocatorFramesTest, EveryBlockIsMemoryOfItsOwn) {
  TestSegment pool({.node_pages = {1024}, .frames = true});
  auto allocator = pool.MakeAllocator();
  std::vector<Pfn> blocks;
  for (Pfn pfn; (pfn = allocator->Allocate(0)).value != kNil;) {
    char* page = pool.segment().frames() + (uint64_t{pfn.value} << kPageShift);
    std::memset(page, static_cast<int>(pfn.value % 251), kPageSizeBytes);
    blocks.push_back(pfn);
  }

  ASSERT_EQ(blocks.size(), 1024u);
  for (Pfn pfn : blocks) {
    const char* page =
        pool.segment().frames() + (uint64_t{pfn.value} << kPageShift);
    EXPECT_EQ(static_cast<unsigned char>(page[4095]), pfn.value % 251);
  }
}

// Whatever way a block takes from one thread to another (pageset, depot, zone,
// offer), the writes of the one are over before those of the next begin. A
// race here is what ThreadSanitizer looks for.
TEST(AllocatorFramesTest, ABlocksWritesNeverCrossItsHandover) {
  TestSegment pool({.node_pages = {4096}, .frames = true});
  auto ours = pool.MakeAllocator();
  auto theirs = pool.MakeAllocator();
  std::atomic<uint32_t> offer{kNil};
  std::atomic<int> torn{0};
  const auto work = [&](Allocator& mine, uint8_t stamp) {
    const auto rounds = static_cast<int>(40000 * RunScale());
    for (int i = 0; i < rounds; ++i) {
      Pfn pfns[70];
      const size_t n = mine.AllocateBulk(0, std::span(pfns, 1 + i % 70));
      for (size_t k = 0; k < n; ++k) {
        char* page =
            pool.segment().frames() + (uint64_t{pfns[k].value} << kPageShift);
        std::memset(page, stamp, 64);
        for (int at : {0, 13, 63}) {
          if (static_cast<uint8_t>(page[at]) != stamp) ++torn;
        }
      }
      if (n > 0 && i % 3 == 0) {
        mine.Offer(pfns[0], 0);
        const uint32_t taken = offer.exchange(pfns[0].value);
        if (taken != kNil && mine.Adopt(Pfn{taken}, 0) == FreeResult::kFreed) {
          char* page =
              pool.segment().frames() + (uint64_t{taken} << kPageShift);
          std::memset(page, stamp, 64);
          mine.Free(Pfn{taken}, 0);
        }
        for (size_t k = 1; k < n; ++k) mine.Free(pfns[k], 0);
      } else {
        mine.FreeBulk(0, std::span(pfns, n));
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t stamp = 1; stamp <= 4; ++stamp) {
    threads.emplace_back(
        [&, stamp] { work(stamp % 2 == 0 ? *ours : *theirs, stamp); });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(torn, 0);
  EXPECT_EQ(ours->FreeAdopted(Pfn{offer.load()}, 0), FreeResult::kFreed);
  ZoneChecker checker(pool.segment());
  EXPECT_EQ(checker.Check(), "");
  EXPECT_EQ(checker.pages().allocated, 0u);
}

TEST(AllocatorPressureTest, DoesNotDrainPagesetsWhileTheMinMarkHolds) {
  PinnedToOneCpu pinned;
  TestSegment pool(
      {.node_pages = {4 * kPagesPerSection}, .low_watermarks = false});
  auto allocator = pool.MakeAllocator();
  const Watermarks marks = pool.zone().WatermarksNow();
  ASSERT_GT(marks.low, marks.min + 126);
  while (pool.zone().FreePages() > marks.low) allocator->Allocate(0);
  const Shared64& drains =
      pool.PagesetHere().flushes[static_cast<size_t>(FlushCause::kDrain)];

  // Order 3 finds its list empty; the order-0 pages are none of its business.
  const uint64_t held = LoadRelaxed(pool.PagesetHere().pages);
  ASSERT_GT(held, 0u);
  EXPECT_NE(allocator->Allocate(3).value, kNil);

  EXPECT_EQ(LoadRelaxed(drains), 0u);
}

}  // namespace
}  // namespace memtuned
