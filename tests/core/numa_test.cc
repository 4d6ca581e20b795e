// SPDX-License-Identifier: Apache-2.0
// Nodes: which one a block comes from under each memory policy and cpuset,
// and what is counted as hit, miss, foreign, other and interleave.
#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/process_mems.h"
#include "core/slot_table.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

constexpr uint64_t kPages = 2048;

// Nodes 0, 4 and 1000, the last one far from 0; this thread on a CPU of `home`.
class NumaTest : public testing::Test {
 protected:
  NumaTest()
      : pool_({.topology = TopologyBuilder("3 nodes, 3 cpus")
                               .OsIndexes({0, 4, 1000})
                               .Distance(0, 2, 31)
                               .Distance(2, 0, 31)
                               .Build(),
               .node_pages = {kPages}}),
        allocator_(pool_.MakeAllocator()),
        slot_(*FindProcessSlot(pool_.segment(), allocator_->owner())),
        mems_(slot_.mems) {
    home_ = LoadRelaxed(pool_.mapping().cpu_table[env::CurrentCpu()].zone);
  }
  ~NumaTest() override { EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), ""); }

  static uint32_t ZoneOf(Pfn pfn) { return pfn.value >> kSectionShift; }
  // Blocks of order 0 by the zone they came from.
  std::vector<uint64_t> Allocate(uint64_t blocks) {
    std::vector<uint64_t> from(3, 0);
    for (uint64_t i = 0; i < blocks; ++i) {
      const Pfn pfn = allocator_->Allocate(0);
      if (pfn.value != kNil) ++from[ZoneOf(pfn)];
    }
    return from;
  }
  PagesetShared& Counters(uint32_t zone) { return pool_.PagesetHere(zone); }
  uint32_t NodeOf(uint32_t zone) { return pool_.zone(zone).node(); }
  // The zones in the order this thread's list tries them.
  std::vector<uint32_t> List() {
    const uint16_t* list = pool_.segment().ZonelistOf(home_);
    return {list, list + 3};
  }
  absl::Status SetPolicy(MemoryPolicy policy, std::vector<int> nodes) {
    NodeMask mask;
    for (int node : nodes) mask.Set(node);
    return allocator_->SetMemoryPolicy(policy, mask);
  }

  void SetCpuset(const NodeMask& nodes) {
    Segment& segment = pool_.segment();
    segment.header().tuning_lock.Lock(kCreatorOwner);
    SetCpusetLocked(segment, slot_, allocator_->owner(), nodes);
    segment.header().tuning_lock.Unlock();
  }

  PinnedToOneCpu pinned_;
  TestSegment pool_;
  std::unique_ptr<Allocator> allocator_;
  ProcessSlot& slot_;
  MemsAllowed& mems_;
  uint32_t home_ = 0;
};

TEST_F(NumaTest, StaysLocalWhileThereIsMemory) {
  const auto from = Allocate(kPages / 2);

  EXPECT_EQ(from[home_], kPages / 2);
  for (uint32_t zone = 0; zone < 3; ++zone) {
    EXPECT_EQ(LoadRelaxed(Counters(zone).numa_miss), 0u);
    EXPECT_EQ(LoadRelaxed(Counters(zone).numa_foreign), 0u);
    EXPECT_EQ(LoadRelaxed(Counters(zone).numa_other), 0u);
  }
}

TEST_F(NumaTest, FallsBackByDistanceAndCountsIt) {
  const auto from = Allocate(3 * kPages);

  EXPECT_EQ(from, (std::vector<uint64_t>{kPages, kPages, kPages}));
  const auto list = List();
  EXPECT_EQ(list[0], home_);
  uint64_t foreign = 0;
  for (uint32_t i : {1u, 2u}) {
    const uint64_t miss = LoadRelaxed(Counters(list[i]).numa_miss);
    EXPECT_GT(miss, kPages - 64);
    EXPECT_LE(miss, kPages);
    EXPECT_EQ(LoadRelaxed(Counters(list[i]).numa_other), miss);
    foreign += miss;
  }
  EXPECT_EQ(LoadRelaxed(Counters(home_).numa_foreign), foreign);
  EXPECT_EQ(allocator_->Allocate(0).value, kNil);
}

TEST_F(NumaTest, BindTakesOnlyTheGivenNodes) {
  ASSERT_TRUE(SetPolicy(MemoryPolicy::kBind, {4, 1000}).ok());

  const auto from = Allocate(3 * kPages);

  EXPECT_EQ(from[0], 0u);
  EXPECT_EQ(from[1], kPages);
  EXPECT_EQ(from[2], kPages);
  EXPECT_EQ(LoadRelaxed(pool_.segment().header().failures[static_cast<size_t>(
                FailureReason::kNoMemory)]),
            kPages);
}

TEST_F(NumaTest, BindToAnotherNodeIsAHitThatIsNotLocal) {
  const uint32_t other = (home_ + 1) % 3;
  ASSERT_TRUE(
      SetPolicy(MemoryPolicy::kBind, {static_cast<int>(NodeOf(other))}).ok());

  const auto from = Allocate(500);

  EXPECT_EQ(from[other], 500u);
  EXPECT_EQ(LoadRelaxed(Counters(other).numa_miss), 0u);
  EXPECT_EQ(LoadRelaxed(Counters(other).numa_other), 500u);
}

TEST_F(NumaTest, PreferredComesFirstThenItsNeighbours) {
  const uint32_t other = (home_ + 2) % 3;
  ASSERT_TRUE(
      SetPolicy(MemoryPolicy::kPreferred, {static_cast<int>(NodeOf(other))})
          .ok());

  EXPECT_EQ(Allocate(1000)[other], 1000u);

  const auto rest = Allocate(3 * kPages - 1000);
  EXPECT_EQ(rest[0] + rest[1] + rest[2], 3 * kPages - 1000);
  EXPECT_GT(LoadRelaxed(Counters(other).numa_foreign), 0u);
}

TEST_F(NumaTest, InterleaveTakesTurns) {
  ASSERT_TRUE(SetPolicy(MemoryPolicy::kInterleave, {0, 1000}).ok());

  const auto from = Allocate(1000);

  EXPECT_EQ(from, (std::vector<uint64_t>{500, 0, 500}));
  EXPECT_EQ(LoadRelaxed(Counters(0).numa_interleave), 500u);
  EXPECT_EQ(LoadRelaxed(Counters(2).numa_interleave), 500u);
}

TEST_F(NumaTest, PolicyLocalComesBack) {
  ASSERT_TRUE(SetPolicy(MemoryPolicy::kBind, {1000}).ok());
  ASSERT_TRUE(SetPolicy(MemoryPolicy::kLocal, {}).ok());

  EXPECT_EQ(Allocate(100)[home_], 100u);
}

TEST_F(NumaTest, RefusesPoliciesWithoutAUsableNode) {
  EXPECT_EQ(SetPolicy(MemoryPolicy::kBind, {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SetPolicy(MemoryPolicy::kBind, {1, 2, 3}).code(),
            absl::StatusCode::kInvalidArgument);
  SetCpuset(NodeMask::Of(0));
  EXPECT_EQ(SetPolicy(MemoryPolicy::kPreferred, {4}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(SetPolicy(MemoryPolicy::kBind, {0, 4}).ok());
  EXPECT_EQ(AllowedMask(mems_), NodeMask::Of(0));
}

TEST_F(NumaTest, ACpusetIsObeyedByEveryWayIn) {
  const uint32_t other = (home_ + 1) % 3;
  WriteMemsAllowed(mems_, NodeMask::Of(static_cast<int>(NodeOf(other))),
                   MemoryPolicy::kLocal, NodeMask(), 0);

  for (int order : {0, 1, 3, 5, 9}) {
    EXPECT_EQ(ZoneOf(allocator_->Allocate(order)), other) << order;
  }
  std::vector<Pfn> blocks(20);
  EXPECT_EQ(allocator_->AllocateBulk(0, blocks), 20u);
  for (Pfn pfn : blocks) EXPECT_EQ(ZoneOf(pfn), other);
}

// As the kernel rebinds a policy when a task's cpuset moves.
TEST_F(NumaTest, APolicyIsNarrowedByACpusetAndComesBack) {
  ASSERT_TRUE(SetPolicy(MemoryPolicy::kBind, {0, 4}).ok());

  SetCpuset(NodeMask::Of(4));
  EXPECT_EQ(Allocate(100), (std::vector<uint64_t>{0, 100, 0}));
  SetCpuset(NodeMask::Of(1000));
  EXPECT_EQ(Allocate(100), (std::vector<uint64_t>{0, 0, 100}))
      << "none of the policy's nodes is left: local";
  SetCpuset(NodeMask::All());
  EXPECT_EQ(AllowedMask(mems_), NodeMask::Of(0) | NodeMask::Of(4));
}

// A writer that died half way through a mask left no word that names it.
TEST_F(NumaTest, AHalfWrittenCpusetIsNeverInForce) {
  SetCpuset(NodeMask::Of(4));
  const uint64_t idle = (LoadRelaxed(mems_.cpuset_word) & 1) ^ 1;
  mems_.cpusets[idle] = NodeMask();

  Segment& segment = pool_.segment();
  segment.header().tuning_lock.Lock(kCreatorOwner);
  PublishMemsLocked(segment, slot_);
  segment.header().tuning_lock.Unlock();

  EXPECT_EQ(AllowedMask(mems_), NodeMask::Of(4));
}

TEST_F(NumaTest, ACpusetIsNotTheNextProcesssInTheSlot) {
  SetCpuset(NodeMask::Of(4));
  ASSERT_TRUE(SetPolicy(MemoryPolicy::kPreferred, {4}).ok());
  const ProcessOwner owner = allocator_->owner();
  allocator_.reset();
  ReleaseProcessSlot(pool_.segment(), owner);

  allocator_ = pool_.MakeAllocator();

  ASSERT_EQ(ProcessSlotOf(allocator_->owner()), ProcessSlotOf(owner));
  EXPECT_EQ(CpusetOf(slot_), NodeMask::All());
  EXPECT_EQ(Allocate(100)[home_], 100u);
  SetCpuset(NodeMask::Of(0));
  EXPECT_EQ(Allocate(100)[0], 100u);
  EXPECT_EQ(LoadRelaxed(CopyOf(mems_, ReadMemsAllowedBegin(mems_)).policy), 0u);
}

TEST_F(NumaTest, AFreedBlockGoesHomeWhereverItIsFreed) {
  const uint32_t other = (home_ + 1) % 3;
  ASSERT_TRUE(
      SetPolicy(MemoryPolicy::kBind, {static_cast<int>(NodeOf(other))}).ok());
  std::vector<Pfn> blocks(100);
  ASSERT_EQ(allocator_->AllocateBulk(0, blocks), 100u);

  EXPECT_EQ(allocator_->FreeBulk(0, blocks), 100u);

  pool_.DrainEverything();
  EXPECT_EQ(pool_.zone(other).FreePages(), kPages);
}

TEST(CpulessNodeTest, IsServedByTheNearestOneWithMemory) {
  PinnedToOneCpu pinned;
  TestSegment pool({.topology = TopologyBuilder("2 nodes, 2 cpus").Build(),
                    .node_pages = {0, 1024}});
  auto allocator = pool.MakeAllocator();

  EXPECT_NE(allocator->Allocate(0).value, kNil);
  EXPECT_EQ(pool.mapping().nr_zones, 1u);
  EXPECT_EQ(pool.zone(0).node(), 1u);
}

}  // namespace
}  // namespace memtuned
