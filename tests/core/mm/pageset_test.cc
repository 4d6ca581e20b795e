// SPDX-License-Identifier: Apache-2.0
// Pagesets beyond the vectors: bulk, drain, depot, changes of limits and
// policy under way, and a guard that somebody else holds.
#include "core/mm/pageset.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "core/slot_table.h"
#include "tests/core/mm/vector_run.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

void ExpectSound(VectorRun& run) {
  EXPECT_EQ(ZoneChecker(run.pool().segment()).Check(), "");
}

TEST(PagesetTest, GivesBackTheHottestBlockFirst) {
  VectorRun run(Memtuned(), true);
  Pfn first = run.allocator().Allocate(0);
  Pfn second = run.allocator().Allocate(0);
  run.allocator().Free(first, 0);
  run.allocator().Free(second, 0);

  EXPECT_EQ(run.allocator().Allocate(0), second);
  EXPECT_EQ(run.allocator().Allocate(0), first);
}

TEST(PagesetTest, HandsOutAscendingAddressesAfterARefill) {
  VectorRun run(Memtuned(), true);

  const Pfn first = run.allocator().Allocate(0);

  for (uint32_t i = 1; i < 64; ++i) {
    EXPECT_EQ(run.allocator().Allocate(0).value, first.value + i);
  }
}

TEST(PagesetTest, DrainReturnsEverythingInSmallHolds) {
  for (const Era& era : {Adaptive(), Memtuned()}) {
    VectorRun run(era, true);
    run.Cycle(0, 400, 1);
    run.Cycle(3, 40, 1);
    Store(run.pool().zone().shared().hold_pages_max, uint64_t{0});

    run.pool().DrainEverything();

    const Moved moved = run.Now();
    EXPECT_EQ(moved.left, 0u);
    EXPECT_EQ(run.pool().zone().FreePages(), 8u * kPagesPerSection);
    EXPECT_LE(moved.hold_pages_max, 512u);
    EXPECT_EQ(run.pool().zone().FreeBlocks(kMaxOrder), 8u * 32);
    ExpectSound(run);
  }
}

// Two threads free the same block, and the one that loses was the first that
// ever came to its CPU: the chunk it loaded must be known all the same.
TEST(PagesetTest, ARefusedFirstFreeLeavesNothingNowhere) {
  VectorRun run(Memtuned(), true);
  TestSegment& pool = run.pool();
  ThreadContext thread;
  TakeThreadSlot(pool.segment(), run.allocator().owner(), &thread);
  Pageset pageset(pool.mapping(), pool.zone(), pool.PagesetHere(), thread,
                  pool.mapping().SeatOf(env::CurrentCpu()));
  const PageWord stale(
      PageWord::State(PageKind::kAllocated, 0, run.allocator().owner()));

  EXPECT_EQ(pageset.GiveBlock(Pfn{0}, 0, stale), Pageset::Give::kRefused);

  ExpectSound(run);
  ReleaseThreadSlot(pool.segment(), thread);
}

TEST(PagesetTest, BulkTakesOneGuardAndLeavesFreeCountAlone) {
  VectorRun run(Adaptive(), true);
  run.TakeFromZone(0, 100);
  run.Free(0, 100);
  const uint32_t free_count = run.pageset().free_count;
  std::vector<Pfn> blocks(50);

  EXPECT_EQ(run.allocator().AllocateBulk(0, blocks), 50u);

  EXPECT_EQ(run.pageset().free_count, free_count);
  EXPECT_EQ(std::set<Pfn>(blocks.begin(), blocks.end()).size(), 50u);
  EXPECT_EQ(run.allocator().FreeBulk(0, blocks), 50u);
  ExpectSound(run);
}

// What a policy decides must not depend on how blocks come back.
TEST(PagesetTest, BulkFreesMoveWhatSingleOnesDo) {
  const auto play = [](const Era& era, int order, bool bulk) {
    VectorRun run(era, true);
    for (size_t n : {1, 63, 64, 700, 200, 2000}) {
      std::vector<Pfn> blocks(n);
      for (Pfn& pfn : blocks) pfn = run.allocator().Allocate(order);
      if (bulk) {
        EXPECT_EQ(run.allocator().FreeBulk(order, blocks), n);
      } else {
        for (Pfn pfn : blocks) run.allocator().Free(pfn, order);
      }
    }
    ExpectSound(run);
    return std::tuple(run.Now(), run.pageset().free_count,
                      run.pageset().alloc_factor,
                      LoadRelaxed(run.pageset().frees[OrderSlot(order)]));
  };
  for (const Era& era : {Fixed63378(), Watermark(), Adaptive(), AdaptiveHigh(),
                         Chunked(), Pinned252(), Memtuned()}) {
    for (int order : {0, 1, 3}) {
      EXPECT_EQ(play(era, order, true), play(era, order, false))
          << era.name << " order " << order;
    }
  }
}

TEST(PagesetTest, BulkGivesWhatThereIs) {
  TestSegment pool({.node_pages = {64}});
  auto allocator = pool.MakeAllocator();
  std::vector<Pfn> blocks(100);

  const size_t got = allocator->AllocateBulk(0, blocks);

  EXPECT_EQ(got, 64u);
  EXPECT_EQ(allocator->FreeBulk(0, std::span(blocks).first(got)), got);
  EXPECT_EQ(ZoneChecker(pool.segment()).Check(), "");
}

TEST(PagesetTest, ADirectOrderNeverTouchesThePageset) {
  VectorRun run(Memtuned(), true);

  run.Cycle(5, 3, 1);

  const Moved moved = run.Now();
  EXPECT_EQ(moved.direct_in, 96u);
  EXPECT_EQ(moved.direct_out, 96u);
  EXPECT_EQ(moved.holds, 6u);
  EXPECT_EQ(moved.left, 0u);
}

TEST(PagesetTest, HoldsTheHugeOrder) {
  VectorRun run(Adaptive(), true);

  run.Cycle(9, 1, 1);

  EXPECT_EQ(run.Now().refills, 1u);
  EXPECT_EQ(run.Now().direct_in, 0u);
  ExpectSound(run);
}

TEST(PagesetTest, AGuardHeldElsewhereCostsAHoldAPage) {
  VectorRun run(Memtuned(), true);
  PagesetShared& pageset = run.pool().PagesetHere();
  run.Cycle(0, 10, 1);
  const Moved before = run.Now();
  ThreadContext stranger;
  TakeThreadSlot(run.pool().segment(), kDaemonProcess, &stranger);
  pageset.guard.LockFromAnywhere(stranger.owner, run.pool().mapping().guard);

  run.Cycle(0, 10, 1);

  pageset.guard.UnlockFromAnywhere(run.pool().mapping().guard);
  const Moved moved = run.Now();
  EXPECT_EQ(moved.holds - before.holds, 20u);
  EXPECT_EQ(moved.direct_in, 10u);
  EXPECT_EQ(moved.direct_out, 10u);
  EXPECT_EQ(LoadRelaxed(pageset.trylock_misses), 20u);
  ExpectSound(run);
}

// Whatever the pageset held under the old policy, the new one's rules hold
// from its next operation on.
TEST(PagesetTest, FixedKeepsNoHighOrdersAfterAChangeOfPolicy) {
  VectorRun run(AdaptiveHigh(), true);
  run.Cycle(3, 20, 1);
  run.Cycle(0, 20, 1);
  run.pool().Publish(Fixed63378().limits);
  run.Cycle(0, 20, 1);
  const Moved before = run.Now();

  run.Cycle(3, 20, 1);

  const Moved moved = run.Now();
  EXPECT_EQ(moved.direct_in - before.direct_in, 20u * 8);
  EXPECT_EQ(moved.direct_out - before.direct_out, 20u * 8);
  EXPECT_EQ(moved.left, before.left);
  ExpectSound(run);
}

TEST(PagesetTest, ShrinksOnTheNextFreeWhenLimitsShrank) {
  VectorRun run(Fixed63378(), true);
  run.TakeFromZone(0, 400);
  run.Free(0, 370);
  run.pool().Publish(Fixed742().limits);

  run.Free(0, 1);

  EXPECT_EQ(run.Now().left, 364u);
  EXPECT_EQ(run.Now().high, 42u);
  ExpectSound(run);
}

// One CPU allocates what another one frees: the worst case of every era. The
// depot carries the batches back without the zone lock.
TEST(ProducerConsumerTest, TakesHardlyAnyHoldsWithTheDepot) {
  if (PinnedToOneCpu::UsableCpus() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto holds = [](const Era& era, uint64_t depot_pages) {
    TestSegment pool({.node_pages = {8 * kPagesPerSection}});
    auto allocator = pool.MakeAllocator();
    ZoneShared& zone = pool.zone().shared();
    pool.Publish(era.limits);
    Store(zone.depot_max_pages, depot_pages);
    std::vector<Pfn> blocks(1000);
    const uint64_t before = LoadRelaxed(zone.lock_counters.acquisitions);
    for (int round = 0; round < 100; ++round) {
      {
        PinnedToOneCpu producer(0);
        for (Pfn& pfn : blocks) pfn = allocator->Allocate(0);
      }
      PinnedToOneCpu consumer(1);
      for (Pfn pfn : blocks) allocator->Free(pfn, 0);
    }
    EXPECT_EQ(ZoneChecker(pool.segment()).Check(), "");
    return LoadRelaxed(zone.lock_counters.acquisitions) - before;
  };

  const uint64_t ours = holds(Memtuned(), 8192);

  // What is under way at once: one burst, and what pagesets may keep.
  EXPECT_LE(ours, 100u);
  EXPECT_LT(20 * ours, holds(Fixed63378(), 0));
}

class DepotTest : public testing::Test {
 protected:
  DepotTest() : run_(Memtuned(), true) {
    PagesetLimits limits = Memtuned().limits;
    limits.high_min = limits.high_max = 252;
    run_.pool().Publish(limits);
    Store(Zone().depot_max_pages, uint64_t{4096});
  }
  ZoneShared& Zone() { return run_.pool().zone().shared(); }

  VectorRun run_;
};

TEST_F(DepotTest, TakesWholeBatchesWithoutTheZoneLock) {
  run_.TakeFromZone(0, 1000);

  run_.Free(0, 1000);

  EXPECT_EQ(run_.Now().out, 0u);
  EXPECT_EQ(run_.Now().holds, 0u);
  EXPECT_EQ(run_.Now().depot + run_.Now().left, 1000u);
  EXPECT_LE(run_.Now().left, 252u + 64);
  ExpectSound(run_);
}

TEST_F(DepotTest, GivesThemBackWithoutTheZoneLock) {
  run_.TakeFromZone(0, 1000);
  run_.Free(0, 1000);

  run_.Allocate(0, 1000);

  EXPECT_EQ(run_.Now().refills, 0u);
  EXPECT_EQ(run_.Now().holds, 0u);
  EXPECT_EQ(LoadRelaxed(Zone().depot_pushes), LoadRelaxed(Zone().depot_pops));
  ExpectSound(run_);
}

TEST_F(DepotTest, NeverGrowsBeyondItsBound) {
  run_.TakeFromZone(0, 10000);

  run_.Free(0, 10000);

  EXPECT_LE(run_.Now().depot, 4096u);
  EXPECT_GT(run_.Now().depot, 4096u - 64);
  EXPECT_GT(run_.Now().out, 0u);
  ExpectSound(run_);
}

TEST_F(DepotTest, IsDrainedWithTheRest) {
  run_.TakeFromZone(0, 1000);
  run_.TakeFromZone(3, 200);
  run_.Free(0, 1000);
  run_.Free(3, 200);

  run_.pool().DrainEverything();

  EXPECT_EQ(run_.Now().depot, 0u);
  EXPECT_EQ(run_.pool().zone().FreePages(), 8u * kPagesPerSection);
  ExpectSound(run_);
}

}  // namespace
}  // namespace memtuned
