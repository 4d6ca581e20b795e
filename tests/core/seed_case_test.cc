// SPDX-License-Identifier: Apache-2.0
// A large machine whose zones come into being section by section: limits
// computed from the first section must not outlive initialisation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/recalculate.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

constexpr uint64_t kPages256GiB = uint64_t{256} << (30 - kPageShift);
constexpr int kSectionsOfZone = static_cast<int>(kPages256GiB >> kSectionShift);

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(getpagesize());
}

// 2 nodes of 128 CPUs and 256 GiB; one section of each zone is there.
class SeedCaseTest : public testing::Test {
 protected:
  void Make(const char* policy) {
    pool_ = std::make_unique<TestSegment>(TestSegmentOptions{
        .topology = TopologyBuilder("2 nodes, 256 cpus").Build(),
        .node_pages = {kPages256GiB},
        .first_sections = 1,
        .policy = policy,
        .low_watermarks = false});
    allocator_ = pool_->MakeAllocator();
  }
  void InitialiseOne(uint32_t zone) {
    const auto more =
        pool_->segment().InitialiseNextSection(zone, kCreatorOwner);
    ASSERT_TRUE(more.ok());
    ASSERT_TRUE(*more);
  }
  PagesetLimits Limits(uint32_t zone) { return pool_->zone(zone).LimitsNow(); }

  // Zone lock acquisitions of 100 x {allocate 300, free 300}, empty at first.
  uint64_t HoldsOf100Cycles() {
    const uint32_t zone =
        LoadRelaxed(pool_->mapping().cpu_table[env::CurrentCpu()].zone);
    pool_->ResetPagesetHere(zone);
    const Shared64& holds =
        pool_->zone(zone).shared().lock_counters.acquisitions;
    const uint64_t before = LoadRelaxed(holds);
    std::vector<Pfn> blocks(300);
    for (int cycle = 0; cycle < 100; ++cycle) {
      for (Pfn& pfn : blocks) pfn = allocator_->Allocate(0);
      for (Pfn pfn : blocks) {
        EXPECT_EQ(allocator_->Free(pfn, 0), FreeResult::kFreed);
      }
    }
    return LoadRelaxed(holds) - before;
  }

  PinnedToOneCpu pinned_;
  std::unique_ptr<TestSegment> pool_;
  std::unique_ptr<Allocator> allocator_;
};

TEST_F(SeedCaseTest, FixedStandsAtSevenUntilTheLastSection) {
  const uint64_t resident_before = ResidentBytes();
  Make("fixed");
  EXPECT_EQ(HoldsOf100Cycles(), 7605u);

  for (int i = 1; i < kSectionsOfZone; ++i) {
    for (uint32_t zone : {0u, 1u}) {
      for (uint32_t z : {0u, 1u}) {
        ASSERT_EQ(Limits(z).batch, 7u) << i;
        ASSERT_EQ(Limits(z).high_max, 42u) << i;
      }
      ASSERT_NO_FATAL_FAILURE(InitialiseOne(zone));
    }
  }

  ASSERT_TRUE(pool_->segment().Initialised());
  for (uint32_t z : {0u, 1u}) {
    EXPECT_EQ(Limits(z).batch, 63u);
    EXPECT_EQ(Limits(z).high_min, 378u);
    EXPECT_EQ(Limits(z).high_max, 378u);
    EXPECT_EQ(LoadRelaxed(pool_->zone(z).shared().managed_pages), kPages256GiB);
  }
  EXPECT_EQ(HoldsOf100Cycles(), 5u);
  EXPECT_EQ(
      LoadRelaxed(pool_->segment().header().recalculations[static_cast<size_t>(
          RecalculateTrigger::kInitialised)]),
      1u);
  EXPECT_LT(ResidentBytes() - resident_before, uint64_t{64} << 20);
}

TEST_F(SeedCaseTest, MemtunedHasSixtyThreeFromTheSixthSectionOn) {
  Make("memtuned");
  const uint32_t batches[] = {7, 15, 31, 31, 31, 63, 63};

  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(Limits(0).batch, batches[i]) << "after section " << i + 1;
    InitialiseOne(0);
  }
  EXPECT_EQ(Limits(1).batch, 7u);
}

TEST_F(SeedCaseTest, MemtunedCyclesUnderFewHoldsFromTheStart) {
  Make("memtuned");
  for (int i = 1; i < 6; ++i) {
    InitialiseOne(0);
    InitialiseOne(1);
  }

  EXPECT_LE(HoldsOf100Cycles(), 5u);
  EXPECT_EQ(ZoneChecker(pool_->segment()).Check(), "");
}

TEST_F(SeedCaseTest, AllocationInitialisesSectionsOnDemand) {
  Make("memtuned");
  const uint64_t section_blocks = kPagesPerSection >> kMaxOrder;

  for (uint64_t i = 0; i < 4 * section_blocks; ++i) {
    ASSERT_NE(allocator_->Allocate(kMaxOrder).value, kNil);
  }

  EXPECT_GE(pool_->segment().SectionsInitialised(), 4u);
}

}  // namespace
}  // namespace memtuned
