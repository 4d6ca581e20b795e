// SPDX-License-Identifier: Apache-2.0
// ZoneChecker finds each kind of inconsistency when one is planted.
#include "tests/support/zone_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/mm/pageset.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"

namespace memtuned {
namespace {

using testing::HasSubstr;

// A pool with blocks in every place there is: free, in pagesets, in the
// depot, allocated, offered, and two pristine sections.
class ZoneCheckerTest : public testing::Test {
 protected:
  ZoneCheckerTest() : allocator_(pool_.MakeAllocator()) {
    for (int order = 0; order <= kMaxOrder; ++order) {
      for (int i = 0; i < 4; ++i) kept_[order] = allocator_->Allocate(order);
    }
    for (int i = 0; i < 400; ++i) many_.push_back(allocator_->Allocate(0));
    for (Pfn pfn : many_) allocator_->Free(pfn, 0);
    EXPECT_EQ(allocator_->Offer(kept_[2], 2), FreeResult::kFreed);
    ParkOneChunk();
  }

  // Moves the chunk of the pageset's deque that is coldest to the depot.
  void ParkOneChunk() {
    PagesetLimits limits = pool_.zone().LimitsNow();
    limits.high_min = limits.high_max = 70;
    pool_.Publish(limits);
    const Pfn pfn = allocator_->Allocate(0);
    allocator_->Free(pfn, 0);
  }

  std::string Check() { return ZoneChecker(pool_.segment()).Check(); }
  PageWord WordAt(uint32_t pfn) {
    return PageWord(LoadRelaxed(pool_.mapping().memmap[pfn].word));
  }
  void SetWord(uint32_t pfn, PageWord word) {
    Store(pool_.mapping().memmap[pfn].word, word.bits());
  }
  ZoneShared& zone() { return pool_.zone().shared(); }
  PagesetShared& pageset() { return pool_.PagesetHere(); }
  // A page that a pageset, or the depot, holds.
  uint32_t CachedPage() {
    return LoadRelaxed(pool_.mapping()
                           .chunks[TopChunk(LoadRelaxed(pageset().top[0]))]
                           .items[0]);
  }
  uint32_t FreePage(int order) {
    const FreeAreas areas(pool_.mapping(), zone());
    return areas.Find(PageType::kOrdinary, order).value;
  }

  PinnedToOneCpu pinned_;
  TestSegment pool_;
  std::unique_ptr<Allocator> allocator_;
  Pfn kept_[kNumOrders];
  std::vector<Pfn> many_;
};

TEST_F(ZoneCheckerTest, AcceptsASoundPoolAndCountsItsPages) {
  ZoneChecker checker(pool_.segment());

  EXPECT_EQ(checker.Check(), "");

  const PoolPages& pages = checker.pages();
  EXPECT_EQ(pages.free + pages.cached + pages.allocated + pages.offered,
            uint64_t{4} * kPagesPerSection);
  EXPECT_EQ(pages.allocated + pages.offered, 4 * 2047u);
  EXPECT_EQ(pages.offered, 4u);
  EXPECT_EQ(pages.of_owner.at(allocator_->owner()), 4 * 2047u);
  EXPECT_GT(zone().DepotPages(), 0u);
  EXPECT_GT(LoadRelaxed(zone().nr_pristine), 0u);
}

TEST_F(ZoneCheckerTest, FindsHeldLocks) {
  zone().lock.Lock(77);
  EXPECT_THAT(Check(), HasSubstr("lock of zone 0 is held by 77"));
  zone().lock.Unlock();
  const GuardKind kind = pool_.mapping().guard;
  pageset().guard.LockFromAnywhere(78, kind);
  EXPECT_THAT(Check(), HasSubstr("guard of zone 0"));
  pageset().guard.UnlockFromAnywhere(kind);
  pool_.segment().header().tuning_lock.Lock(79);
  EXPECT_THAT(Check(), HasSubstr("tuning lock is held by 79"));
  pool_.segment().header().tuning_lock.Unlock();
}

TEST_F(ZoneCheckerTest, FindsOpenIntentsAndPendingChunks) {
  Store(zone().intent.what, 3u);
  EXPECT_THAT(Check(), HasSubstr("intent on area 3"));
  Store(zone().intent.what, kNil);
  Store(pool_.mapping().threads[5].pending, kPendingChunk | 2);
  EXPECT_THAT(Check(), HasSubstr("thread slot 5"));
}

TEST_F(ZoneCheckerTest, FindsAPageInNoPlace) {
  const uint32_t pfn = kept_[0].value;
  SetWord(pfn, WordAt(pfn).With(PageKind::kUntouched, 0, 0));

  EXPECT_THAT(Check(), HasSubstr("is in no place"));
}

TEST_F(ZoneCheckerTest, FindsAnOwnerThatIsNobody) {
  const uint32_t pfn = kept_[0].value;
  SetWord(pfn, WordAt(pfn).With(PageKind::kAllocated, 0, 12345));

  EXPECT_THAT(Check(), HasSubstr("belongs to nobody"));
}

TEST_F(ZoneCheckerTest, FindsAWordInsideABlockThatOwns) {
  const uint32_t pfn = kept_[4].value + 3;
  SetWord(pfn, WordAt(pfn).With(PageKind::kAllocated, 0, 1));

  EXPECT_THAT(Check(), HasSubstr("lies inside the block"));
}

TEST_F(ZoneCheckerTest, FindsABlockThatLeavesItsSection) {
  const uint32_t pfn = kept_[0].value;
  SetWord(pfn, WordAt(pfn).With(PageKind::kAllocated, 12, 1));

  EXPECT_THAT(Check(), HasSubstr("no aligned block"));
}

TEST_F(ZoneCheckerTest, FindsALostFreeBlock) {
  const uint32_t pfn = kept_[3].value;
  SetWord(pfn, WordAt(pfn).With(PageKind::kFree, 3, 0));

  EXPECT_NE(Check(), "");
}

TEST_F(ZoneCheckerTest, FindsAMissingFreeBit) {
  const uint32_t pfn = FreePage(kMaxOrder);
  FreeAreas(pool_.mapping(), zone())
      .Clear(PageType::kOrdinary, kMaxOrder, Pfn{pfn});

  EXPECT_THAT(Check(), HasSubstr("bits, the memmap has"));
}

TEST_F(ZoneCheckerTest, FindsABitInTheWrongPlace) {
  FreeAreas areas(pool_.mapping(), zone());
  areas.Clear(PageType::kOrdinary, kMaxOrder, Pfn{FreePage(kMaxOrder)});
  areas.Set(PageType::kOrdinary, kMaxOrder, Pfn{0});

  EXPECT_THAT(Check(), HasSubstr("has no bit"));
}

TEST_F(ZoneCheckerTest, FindsBuddiesThatWereNotMerged) {
  const uint32_t pfn = FreePage(kMaxOrder);
  FreeAreas areas(pool_.mapping(), zone());
  areas.Clear(PageType::kOrdinary, kMaxOrder, Pfn{pfn});
  for (uint32_t half : {pfn, pfn + 512}) {
    SetWord(half, WordAt(half).With(PageKind::kFree, 9, 0));
    areas.Set(PageType::kOrdinary, 9, Pfn{half});
  }

  EXPECT_THAT(Check(), HasSubstr("was not merged"));
}

TEST_F(ZoneCheckerTest, FindsWrongTypes) {
  const uint32_t pfn = FreePage(kMaxOrder);
  SetWord(pfn, WordAt(pfn).WithType(PageType::kPurgeable));

  EXPECT_THAT(Check(), HasSubstr("has type 1"));
}

TEST_F(ZoneCheckerTest, FindsACachedPageWithoutItsChunk) {
  const uint32_t pfn = kept_[0].value;
  SetWord(pfn, WordAt(pfn).With(PageKind::kCached, 0,
                                TopChunk(LoadRelaxed(pageset().top[0]))));

  EXPECT_THAT(Check(), HasSubstr("say they are in it"));
}

TEST_F(ZoneCheckerTest, FindsAChunkItemThatIsNotCached) {
  const uint32_t pfn = CachedPage();
  SetWord(pfn, WordAt(pfn).With(PageKind::kAllocated, 0, allocator_->owner()));

  EXPECT_THAT(Check(), HasSubstr("does not say so"));
}

TEST_F(ZoneCheckerTest, FindsALostChunk) {
  Store(pageset().top[0], kNoTop);

  EXPECT_NE(Check(), "");
}

TEST_F(ZoneCheckerTest, FindsAChunkInTwoPlaces) {
  Store(pageset().top[2], TopWord(TopChunk(LoadRelaxed(pageset().top[0])), 0));

  EXPECT_NE(Check(), "");
}

// Each count, off by one, is named.
TEST_F(ZoneCheckerTest, FindsEveryWrongCount) {
  struct Count {
    const char* says;
    std::function<void(uint64_t)> add;
  };
  const auto bump64 = [](Shared64& where) {
    return [&where](uint64_t by) { where.fetch_add(by); };
  };
  const auto bump32 = [](Shared32& where) {
    return
        [&where](uint64_t by) { where.fetch_add(static_cast<uint32_t>(by)); };
  };
  const Count counts[] = {
      {"free_pages says", bump64(zone().free_pages)},
      {"managed_pages says", bump64(zone().managed_pages)},
      {"nr_pristine says", bump32(zone().nr_pristine)},
      {"free_blocks of type 0 order 3", bump64(zone().free_blocks[0][3])},
      {"free_blocks of type 1 order 10", bump64(zone().free_blocks[1][10])},
      {"area_free says", bump32(pool_.mapping().free_areas[0].area_free[2])},
      {"its chunks have", bump32(pageset().pages)},
      {"after", bump32(pageset().lists[0].nr_deque)},
      {"depot of zone 0 list 0 says",
       bump64(zone().depot[0].pages[ChunkStack::ParityOf(
           LoadRelaxed(zone().depot[0].head))])},
  };
  for (const Count& count : counts) {
    count.add(1);
    EXPECT_THAT(Check(), HasSubstr(count.says));
    count.add(~uint64_t{0});
    EXPECT_EQ(Check(), "");
  }
}

TEST_F(ZoneCheckerTest, FindsWrongSummariesAndSectionMaps) {
  Shared64& summary = pool_.mapping().free_areas[0].summary[0][0];
  summary.fetch_xor(1);
  EXPECT_THAT(Check(), HasSubstr("summary"));
  summary.fetch_xor(1);
  Shared64& map = pool_.mapping().section_maps[zone().map_start];
  map.fetch_xor(8);
  EXPECT_THAT(Check(), HasSubstr("section map"));
  map.fetch_xor(8);
  Shared64& top =
      pool_.mapping().section_maps[zone().map_start + zone().map_words];
  top.fetch_xor(1);
  EXPECT_THAT(Check(), HasSubstr("top of word 0"));
  top.fetch_xor(1);
  EXPECT_EQ(Check(), "");
}

TEST(ZoneCheckerSizesTest, AcceptsZonesOfSixtyFourPages) {
  TestSegment pool({.topology = TopologyBuilder("2 nodes, 2 cpus").Build(),
                    .node_pages = {64, 65}});

  ZoneChecker checker(pool.segment());

  EXPECT_EQ(checker.Check(), "");
  EXPECT_EQ(checker.pages().free, 129u);
}

}  // namespace
}  // namespace memtuned
