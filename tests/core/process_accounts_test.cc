// SPDX-License-Identifier: Apache-2.0
// What processes are said to hold: by order from their counters, by node from
// the memmap, and the most they ever held.
#include "core/process_accounts.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/allocator.h"
#include "core/slot_table.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"

namespace memtuned {
namespace {

class ProcessAccountsTest : public testing::Test {
 protected:
  ProcessAccountsTest()
      : pool_(
            {.topology =
                 TopologyBuilder("2 nodes, 64 cpus").OsIndexes({0, 7}).Build(),
             .node_pages = {2 * kPagesPerSection}}),
        ours_(pool_.MakeAllocator()) {}

  ProcessSnapshot Ours() {
    for (const ProcessSnapshot& process : ReadProcesses(pool_.segment())) {
      if (process.slot == ProcessSlotOf(ours_->owner())) return process;
    }
    ADD_FAILURE() << "not listed";
    return {};
  }
  std::vector<Pfn> Take(size_t blocks, int order = 0) {
    std::vector<Pfn> taken;
    while (taken.size() < blocks) taken.push_back(ours_->Allocate(order));
    return taken;
  }
  void Give(const std::vector<Pfn>& blocks, int order = 0) {
    for (Pfn pfn : blocks) ours_->Free(pfn, order);
  }

  TestSegment pool_;
  std::unique_ptr<Allocator> ours_;
};

TEST_F(ProcessAccountsTest, CountsWhatIsHeldOfEachOrder) {
  for (int order = 0; order <= kMaxOrder; ++order) {
    Take(static_cast<size_t>(order) + 2, order);
  }
  Give(Take(3, 4), 4);
  std::thread([&] { Give({ours_->Allocate(2)}, 2), Take(1, 1); }).join();

  const ProcessSnapshot ours = Ours();

  uint64_t pages = 0;
  for (int order = 0; order <= kMaxOrder; ++order) {
    const auto blocks = static_cast<uint64_t>(order + 2 + (order == 1 ? 1 : 0));
    EXPECT_EQ(ours.held_blocks[static_cast<size_t>(order)], blocks) << order;
    pages += blocks << order;
  }
  EXPECT_EQ(ours.allocated_pages, pages);
  EXPECT_EQ(HeldPages(pool_.segment(), ours_->owner()), pages);
}

TEST_F(ProcessAccountsTest, OperationsMoveWithEachTakeAndGive) {
  const uint64_t before = Ours().operations;

  Give({ours_->Allocate(0)});

  EXPECT_EQ(Ours().operations, before + 2);
  EXPECT_EQ(Ours().operations, before + 2);
}

TEST_F(ProcessAccountsTest, AdoptedBlocksAreCountedWhereTheyAre) {
  auto theirs = pool_.MakeAllocator();
  const Pfn block = theirs->Allocate(5);
  theirs->Offer(block, 5);

  ours_->Adopt(block, 5);

  const auto all = ReadProcesses(pool_.segment());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].held_blocks[5], 1u);
  EXPECT_EQ(all[1].held_blocks[5], 0u);
}

TEST_F(ProcessAccountsTest, FindsWhereBlocksAreAndWhatTheyAreFor) {
  NodeMask far;
  far.Set(7);
  Take(3, 2);
  ASSERT_TRUE(ours_->SetMemoryPolicy(MemoryPolicy::kBind, far).ok());
  const auto on_far = Take(5, 9);
  ours_->Offer(on_far[0], 9);
  ASSERT_NE(ours_->Allocate(0, PageType::kPurgeable).value, kNil);
  auto theirs = pool_.MakeAllocator();
  theirs->Allocate(3);

  const auto nodes = ReadHoldings(pool_.segment(), ours_->owner());

  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].node, 0);
  EXPECT_EQ(nodes[1].node, 7);
  EXPECT_EQ(nodes[1].blocks[9], 5u);
  EXPECT_EQ(nodes[1].offered_pages, 512u);
  EXPECT_EQ(nodes[1].purgeable_pages, 1u);
  EXPECT_EQ(nodes[0].pages + nodes[1].pages, 12u + 5 * 512 + 1);
  EXPECT_EQ(nodes[0].blocks[2] + nodes[1].blocks[2], 3u);
  const auto others = ReadHoldings(pool_.segment(), theirs->owner());
  EXPECT_EQ(others[0].pages + others[1].pages, 8u);
}

TEST_F(ProcessAccountsTest, ThePeakIsExactWhenItIsLookedAt) {
  const auto blocks = Take(100);
  EXPECT_EQ(Ours().peak_pages, 100u);

  Give(blocks);

  EXPECT_EQ(Ours().allocated_pages, 0u);
  EXPECT_EQ(Ours().peak_pages, 100u);
}

// Nobody looks while it rises and falls.
TEST_F(ProcessAccountsTest, AShortRiseShowsInThePeakButForItsLastPages) {
  constexpr uint64_t kPages = 20000;
  for (int round = 0; round < 3; ++round) Give(Take(kPages));

  const uint64_t peak = Ours().peak_pages;

  EXPECT_LE(peak, kPages);
  const uint64_t stock = LoadRelaxed(pool_.PagesetHere().high);
  EXPECT_GE(peak + kPages / 64 + 2 * kPeakStep + stock, kPages);
}

TEST_F(ProcessAccountsTest, RisesOfSeveralThreadsAddUp) {
  constexpr uint64_t kPages = 8000;
  constexpr uint64_t kThreads = 3;
  std::atomic<uint64_t> up{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto blocks = Take(kPages);
      ++up;
      while (up < kThreads) std::this_thread::yield();
      Give(blocks);
    });
  }
  for (std::thread& thread : threads) thread.join();

  const uint64_t peak = Ours().peak_pages;

  EXPECT_LE(peak, kThreads * kPages);
  const uint64_t stock = LoadRelaxed(pool_.PagesetHere().high);
  EXPECT_GE(peak + kThreads * (kPages / 64 + 2 * kPeakStep + stock),
            kThreads * kPages);
}

TEST_F(ProcessAccountsTest, TheNextProcessInASlotStartsFromNothing) {
  Take(10);
  const ProcessOwner owner = ours_->owner();
  ours_.reset();
  ReleaseProcessSlot(pool_.segment(), owner);

  ours_ = pool_.MakeAllocator();

  EXPECT_EQ(Ours().peak_pages, 0u);
  EXPECT_EQ(Ours().operations, 0u);
  EXPECT_EQ(Ours().allocated_pages, 0u);
}

}  // namespace
}  // namespace memtuned
