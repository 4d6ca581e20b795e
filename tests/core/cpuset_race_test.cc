// SPDX-License-Identifier: Apache-2.0
// Allocation while the allowed nodes change as fast as a writer can change
// them: no allocation may fail, because at every instant some allowed node
// has memory. Built a second time with the retry left out; then it must fail,
// or this test proves nothing.
//
// The masks span words (nodes 0 and 1000) and come in any order, so that each
// of the two copies is overwritten with another mask while readers look at it,
// and is empty for a moment when node 1000 follows node 0. On one CPU threads
// interrupt each other in the middle of a write and of a walk, which is where a
// reader without retry fails; on all CPUs they race.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "core/slot_table.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

using Clock = std::chrono::steady_clock;

class CpusetRaceTest : public testing::Test {
 protected:
  CpusetRaceTest()
      : pool_({.topology = TopologyBuilder("3 nodes, 6 cpus")
                               .OsIndexes({0, 500, 1000})
                               .AlternateCpus()
                               .Build(),
               .node_pages = {kPagesPerSection}}),
        allocator_(pool_.MakeAllocator()),
        mems_(FindProcessSlot(pool_.segment(), allocator_->owner())->mems) {}

  void Write(const NodeMask& mask) {
    WriteMemsAllowed(mems_, mask, MemoryPolicy::kLocal, NodeMask(), 0);
  }

  void Flip() {
    const NodeMask low = NodeMask::Of(0);
    const NodeMask high = NodeMask::Of(1000);
    const std::array<NodeMask, 3> masks = {low, high, low | high};
    std::minstd_rand random;
    while (!stop_.load(std::memory_order_relaxed)) {
      Write(masks[random() % masks.size()]);
      ++updates_;
    }
  }

  void AllocateAndFree() {
    const uint32_t first_of_500 = kPagesPerSection;
    std::vector<Pfn> held;
    while (!stop_.load(std::memory_order_relaxed)) {
      const Pfn pfn = allocator_->Allocate(0);
      allocations_.fetch_add(1, std::memory_order_relaxed);
      if (pfn.value == kNil) {
        failures_.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      if (pfn.value / kPagesPerSection * kPagesPerSection == first_of_500) {
        never_allowed_.fetch_add(1, std::memory_order_relaxed);
      }
      held.push_back(pfn);
      if (held.size() == 8) {
        for (Pfn block : held) allocator_->Free(block, 0);
        held.clear();
      }
    }
    for (Pfn block : held) allocator_->Free(block, 0);
  }

  // Until the time passed or, when asked to, the first failure. Threads start
  // with this thread's affinity.
  void RunFor(std::chrono::milliseconds time, bool until_failure) {
    stop_ = false;
    Write(NodeMask::Of(0));
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Flip(); });
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([this] { AllocateAndFree(); });
    }
    const auto end = Clock::now() + time;
    while (Clock::now() < end && !(until_failure && failures_ > 0)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    stop_ = true;
    for (std::thread& thread : threads) thread.join();
    std::printf("  %lu updates, %lu allocations, %lu retries, %lu failures\n",
                static_cast<unsigned long>(updates_.load()),
                static_cast<unsigned long>(allocations_.load()),
                static_cast<unsigned long>(Retries()),
                static_cast<unsigned long>(failures_.load()));
  }

  uint64_t Retries() {
    return LoadRelaxed(pool_.segment().header().mems_allowed_retries);
  }

  TestSegment pool_;
  std::unique_ptr<Allocator> allocator_;
  MemsAllowed& mems_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> updates_{0}, allocations_{0}, failures_{0},
      never_allowed_{0};
};

#ifndef MEMTUNED_NO_MEMS_RETRY

TEST_F(CpusetRaceTest, NeverFailsWhileSomeAllowedNodeHasMemory) {
  const std::chrono::milliseconds half(
      NumberFromEnvironment("MEMTUNED_CPUSET_SECONDS", 3) * 500);
  RunFor(half, false);
  {
    PinnedToOneCpu pinned;
    RunFor(half, false);
  }

  EXPECT_EQ(failures_, 0u);
  EXPECT_EQ(never_allowed_, 0u);
  EXPECT_GT(updates_, 1000u);
  EXPECT_GT(allocations_, 1000u);
  // Each retry needed one more update.
  EXPECT_LE(Retries(), 4 * updates_);
  EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), "");
}

TEST_F(CpusetRaceTest, SuccessNeverLooksAtTheCookieAgain) {
  for (int i = 0; i < 1000; ++i) {
    Write(i % 2 == 0 ? NodeMask::Of(0) : NodeMask::Of(1000));
    const Pfn pfn = allocator_->Allocate(0);
    ASSERT_NE(pfn.value, kNil);
    allocator_->Free(pfn, 0);
  }

  EXPECT_EQ(Retries(), 0u);
}

TEST_F(CpusetRaceTest, SequenceGrowsWithEveryWriteAlsoOfTheSameMask) {
  MemsCookie before = ReadMemsAllowedBegin(mems_);
  for (int i = 0; i < 10; ++i) {
    Write(NodeMask::Of(0));
    EXPECT_TRUE(ReadMemsAllowedRetry(mems_, before));
    before = ReadMemsAllowedBegin(mems_);
    EXPECT_FALSE(ReadMemsAllowedRetry(mems_, before));
  }
}

TEST_F(CpusetRaceTest, FailsOnceWhenNothingIsAllowed) {
  Write(NodeMask::Of(7));

  EXPECT_EQ(allocator_->Allocate(0).value, kNil);

  EXPECT_EQ(Retries(), 0u);
}

#else

TEST_F(CpusetRaceTest, FailsWithoutTheRetry) {
  RunFor(std::chrono::seconds(30), /*until_failure=*/true);

  EXPECT_GT(failures_, 0u);
}

#endif

}  // namespace
}  // namespace memtuned
