// SPDX-License-Identifier: Apache-2.0
// A zone by itself: blocks, buddies, page types, sections.
#include "core/mm/zone.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

class ZoneTest : public testing::Test {
 protected:
  void Make(uint64_t pages) {
    pool_ = std::make_unique<TestSegment>(
        TestSegmentOptions{.node_pages = {pages}});
    owner_ = pool_->TakeProcess();
  }
  Pfn Take(int order, PageType type = PageType::kOrdinary) {
    Zone& zone = pool_->zone();
    zone.Lock(kCreatorOwner);
    const Pfn pfn = zone.TakeBlockLocked(order, type, owner_);
    zone.Unlock(0);
    return pfn;
  }
  void Give(Pfn pfn, int order) {
    Zone& zone = pool_->zone();
    zone.Lock(kCreatorOwner);
    const PageWord word(LoadRelaxed(pool_->mapping().page(pfn).word));
    EXPECT_EQ(word.order(), order);
    EXPECT_TRUE(zone.GiveBlockLocked(pfn, word));
    zone.Unlock(0);
  }
  uint64_t Free() { return pool_->zone().FreePages(); }
  void ExpectSound() { EXPECT_EQ(ZoneChecker(pool_->segment()).Check(), ""); }

  std::unique_ptr<TestSegment> pool_;
  ProcessOwner owner_ = 0;
};

TEST_F(ZoneTest, SplitsOneLargeBlockAndMergesItAgain) {
  Make(1024);

  const Pfn pfn = Take(0);

  EXPECT_EQ(pfn.value, 0u);
  for (int order = 0; order < kMaxOrder; ++order) {
    EXPECT_EQ(pool_->zone().FreeBlocks(order), 1u) << order;
  }
  EXPECT_EQ(pool_->zone().FreeBlocks(kMaxOrder), 0u);
  Give(pfn, 0);
  EXPECT_EQ(pool_->zone().FreeBlocks(kMaxOrder), 1u);
  EXPECT_EQ(pool_->zone().LargestFreeOrder(), kMaxOrder);
  ExpectSound();
}

TEST_F(ZoneTest, HandsOutEveryPageOfASmallZoneOnce) {
  for (uint64_t pages : {64u, 65u, 100u, 1023u}) {
    Make(pages);
    std::vector<uint32_t> taken;
    for (;;) {
      const Pfn pfn = Take(0);
      if (pfn.value == kNil) break;
      taken.push_back(pfn.value);
    }

    ASSERT_EQ(taken.size(), pages);
    std::sort(taken.begin(), taken.end());
    EXPECT_EQ(std::unique(taken.begin(), taken.end()), taken.end());
    EXPECT_EQ(taken.back(), pages - 1);
    EXPECT_EQ(Free(), 0u);
    EXPECT_EQ(pool_->zone().LargestFreeOrder(), -1);
    for (uint32_t pfn : taken) Give(Pfn{pfn}, 0);
    EXPECT_EQ(Free(), pages);
    ExpectSound();
  }
}

TEST_F(ZoneTest, AlignsBlocksToTheirSize) {
  Make(4 * 1024);
  Take(0);
  for (int order = 0; order <= kMaxOrder; ++order) {
    EXPECT_EQ(Take(order).value & ((1u << order) - 1), 0u) << order;
  }
  ExpectSound();
}

// Types share a page block only when nothing else is left; a zone smaller
// than a page block has nothing else.
TEST_F(ZoneTest, ServesBothTypesFromAZoneSmallerThanAPageBlock) {
  Make(64);
  std::vector<Pfn> blocks;
  for (int i = 0; i < 32; ++i) {
    blocks.push_back(Take(0, PageType::kOrdinary));
    blocks.push_back(Take(0, PageType::kPurgeable));
  }

  for (Pfn pfn : blocks) ASSERT_NE(pfn.value, kNil);
  EXPECT_EQ(Take(0, PageType::kPurgeable).value, kNil);
  ExpectSound();
  for (Pfn pfn : blocks) Give(pfn, 0);
  ExpectSound();
  EXPECT_EQ(Free(), 64u);
}

TEST_F(ZoneTest, LooksNoFurtherThanTheZoneForTheOtherType) {
  // The memmap, and with it the mapping, ends in the middle of a page block.
  Make(256);
  std::vector<Pfn> blocks;
  for (int i = 0; i < 256; ++i) blocks.push_back(Take(0));
  Give(blocks[100], 0);

  EXPECT_EQ(Take(0, PageType::kPurgeable), blocks[100]);
  ExpectSound();
}

TEST_F(ZoneTest, KeepsTypesApartFromBothEnds) {
  Make(2 * kPagesPerSection);

  const Pfn ordinary = Take(0, PageType::kOrdinary);
  const Pfn purgeable = Take(0, PageType::kPurgeable);

  EXPECT_EQ(ordinary.value, 0u);
  EXPECT_GE(purgeable.value, kPagesPerSection);
  ExpectSound();
}

TEST_F(ZoneTest, LeavesSectionsPristineUntilNeeded) {
  Make(3 * kPagesPerSection);
  EXPECT_EQ(LoadRelaxed(pool_->zone().shared().nr_pristine), 3u);
  EXPECT_EQ(pool_->zone().FreeBlocks(kMaxOrder), 3 * 32u);

  Take(0);

  EXPECT_EQ(LoadRelaxed(pool_->zone().shared().nr_pristine), 2u);
  EXPECT_EQ(Free(), 3 * kPagesPerSection - 1);
  ExpectSound();
}

TEST_F(ZoneTest, UsesFragmentsBeforeItSplits) {
  Make(4 * 1024);
  std::vector<Pfn> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Take(0));
  Give(blocks[2], 0);
  Give(blocks[5], 0);

  EXPECT_EQ(Take(0), blocks[2]);
  EXPECT_EQ(Take(0), blocks[5]);
}

TEST_F(ZoneTest, StaysSoundUnderRandomBlocksOfBothTypes) {
  Make(kPagesPerSection + 777);
  std::mt19937 random(7);
  std::vector<std::pair<Pfn, int>> held;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 5 < 3) {
      const int order = static_cast<int>(random() % 11);
      const Pfn pfn = Take(order, random() % 3 == 0 ? PageType::kPurgeable
                                                    : PageType::kOrdinary);
      if (pfn.value != kNil) held.emplace_back(pfn, order);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      Give(held.back().first, held.back().second);
      held.pop_back();
    }
    if (i % 4000 == 0) ExpectSound();
  }

  for (const auto& [pfn, order] : held) Give(pfn, order);

  ExpectSound();
  EXPECT_EQ(Free(), kPagesPerSection + 777u);
}

TEST_F(ZoneTest, IsAboveAMarkOnlyWhenTheBlockLeavesEnough) {
  Make(1024);
  Zone& zone = pool_->zone();

  EXPECT_TRUE(zone.Above(0, 1023));
  EXPECT_FALSE(zone.Above(0, 1024));
  EXPECT_TRUE(zone.Above(10, 0));
  EXPECT_FALSE(zone.Above(10, 1));
  Take(0);
  EXPECT_FALSE(zone.Above(10, 0));
  EXPECT_TRUE(zone.Above(9, 0));
}

}  // namespace
}  // namespace memtuned
