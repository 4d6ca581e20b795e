// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/pool_subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/slot_table.h"
#include "tests/daemon/pool/pool_test_util.h"

namespace memtuned {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

class PoolSubjectTest : public testing::Test {
 protected:
  std::unique_ptr<PoolSubject> Make(PoolConfig config) {
    auto pool = PoolSubject::Create(config, TwoNodes(), &store_);
    EXPECT_TRUE(pool.ok()) << pool.status();
    EXPECT_TRUE(Eventually([&] { return (*pool)->segment().Initialised(); }));
    return *std::move(pool);
  }
  std::unique_ptr<PoolSubject> Make() {
    return Make(SmallPool(dir_, 4 * kGiB));
  }

  // One pageset filled by this thread: `blocks` allocated and freed again.
  static void Use(PoolSubject& pool, int blocks) {
    const auto owner = TakeProcessSlot(pool.segment(), {});
    ASSERT_TRUE(owner.ok());
    Allocator allocator(pool.segment(), *owner);
    std::vector<Pfn> held;
    for (int i = 0; i < blocks; ++i) held.push_back(allocator.Allocate(0));
    for (Pfn pfn : held) {
      ASSERT_EQ(allocator.Free(pfn, 0), FreeResult::kFreed);
    }
  }

  TempDir dir_;
  FdStore store_;
};

TEST_F(PoolSubjectTest, SpreadsItsSizeOverTheNodes) {
  auto pool = Make();

  const auto snapshot = pool->TakeSnapshot(false);

  ASSERT_TRUE(snapshot.ok());
  ASSERT_EQ(snapshot->zones.size(), 2u);
  EXPECT_EQ(snapshot->size_bytes, 4 * kGiB);
  EXPECT_EQ(snapshot->zones[0].present_pages, 2 * kGiB / 4096);
  EXPECT_EQ(snapshot->zones[1].node, 1);
  EXPECT_EQ(snapshot->zones[1].cpus, 4) << "a pageset for every CPU";
}

TEST_F(PoolSubjectTest, RefusesASizeThatGivesANodeNothing) {
  const auto pool =
      PoolSubject::Create(SmallPool(dir_, 4u << 20), TwoNodes(), &store_);

  EXPECT_EQ(pool.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pool.status().message()),
              HasSubstr("size 4194304 bytes is too small"));
}

TEST_F(PoolSubjectTest, RefusesASocketPathTheKernelCannotHold) {
  PoolConfig config = SmallPool(dir_, kGiB);
  config.socket_path = dir_.path() + "/" + std::string(120, 'x');

  const auto pool = PoolSubject::Create(config, TwoNodes(), &store_);

  EXPECT_EQ(pool.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pool.status().message()), HasSubstr("allowed 1 to"));
}

TEST_F(PoolSubjectTest, APlanEqualsWhatThenHappens) {
  auto pool = Make();
  ChangeContext plan;
  plan.validate_only = true;
  const std::vector<TunableAssignment> change = {
      {"pageset.batch_factor", 0.5}, {"watermark.scale_factor", int64_t{50}}};

  const auto planned = pool->Apply(change, plan);
  const auto before = pool->TakeSnapshot(false);
  const auto applied = pool->Apply(change, ChangeContext{});
  const auto after = pool->TakeSnapshot(false);

  ASSERT_TRUE(planned.ok() && applied.ok() && before.ok() && after.ok());
  EXPECT_EQ(planned->generation, 0);
  EXPECT_EQ(before->zones[0].batch, 63u);
  EXPECT_EQ(applied->generation, 1);
  EXPECT_EQ(after->zones[0].batch, 31u);
  ASSERT_EQ(planned->effects.size(), applied->effects.size());
  ASSERT_FALSE(planned->effects.empty());
  for (const Effect& effect : planned->effects) {
    if (effect.where != "nodes/0/zones/Normal") continue;
    if (effect.what == "pageset batch") {
      EXPECT_EQ(effect.after, 31);
    }
    if (effect.what == "watermark low") {
      EXPECT_EQ(effect.after, static_cast<int64_t>(
                                  after->zones[0].watermark_low_pages * 4096));
    }
  }
}

TEST_F(PoolSubjectTest, ABadValueChangesNothingOfItsCompany) {
  auto pool = Make();
  const std::string etag = pool->Version().etag;

  const auto result = pool->Apply({{"pageset.batch_factor", 2.0},
                                   {"watermark.scale_factor", int64_t{9999}}},
                                  ChangeContext{});

  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("watermark.scale_factor is 9999; allowed 1 to 3000"));
  EXPECT_EQ(pool->Version().etag, etag);
}

TEST_F(PoolSubjectTest, AnOldEtagIsRefusedAndNamesTheNewOne) {
  auto pool = Make();
  ChangeContext context;
  context.etag = pool->Version().etag;
  ASSERT_TRUE(pool->Apply({{"pageset.batch_factor", 2.0}}, context).ok());

  const auto late = pool->Apply({{"pageset.batch_factor", 4.0}}, context);

  EXPECT_EQ(late.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(late.status().message()),
              HasSubstr(pool->Version().etag));
}

TEST_F(PoolSubjectTest, TheSameTunableTwiceIsRefused) {
  auto pool = Make();

  const auto result = pool->Apply(
      {{"pageset.batch_factor", 2.0}, {"pageset.batch_factor", 4.0}},
      ChangeContext{});

  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PoolSubjectTest, DrainReturnsWhatPagesetsHoldAndChangesNoLimit) {
  auto pool = Make();
  Use(*pool, 100);
  const auto before = pool->TakeSnapshot(true);

  const auto drained = pool->Drain(Scope{}, ChangeContext{});
  const auto after = pool->TakeSnapshot(true);

  ASSERT_TRUE(drained.ok());
  int64_t left = 0, was = 0;
  for (const ZoneDrain& zone : drained->zones) {
    was += zone.pages_before;
    left += zone.pages_after;
  }
  EXPECT_GE(was, 100);
  EXPECT_EQ(left, 0);
  EXPECT_EQ(after->zones[0].high_min, before->zones[0].high_min);
  EXPECT_EQ(after->zones[0].free_pages, after->zones[0].managed_pages);
}

TEST_F(PoolSubjectTest, DrainOfAnUnknownScopeNamesIt) {
  auto pool = Make();
  Scope node, zone, cpu;
  node.nodes = {7};
  zone.zones = {"DMA"};
  cpu.cpus = {4711};

  for (const auto& [scope, text] :
       {std::pair(node, "no node 7"), std::pair(zone, "no zone DMA"),
        std::pair(cpu, "no CPU 4711")}) {
    const auto result = pool->Drain(scope, ChangeContext{});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
  }
}

TEST_F(PoolSubjectTest, AChangeOfPolicyEmptiesTheOldLists) {
  auto pool = Make();
  Use(*pool, 100);

  ASSERT_TRUE(
      pool->Apply({{"pageset.policy", std::string("fixed")}}, ChangeContext{})
          .ok());
  const auto after = pool->TakeSnapshot(true);

  EXPECT_EQ(after->policy, "fixed");
  EXPECT_EQ(after->zones[0].pageset_pages_sum, 0u);
  EXPECT_EQ(after->zones[0].high_min, 378u);
}

TEST_F(PoolSubjectTest, RecalculateOfOneNodeLeavesTheOtherAlone) {
  auto pool = Make();
  Zone& other = pool->segment().zone(1);
  PagesetLimits stale = other.LimitsNow();
  stale.batch = 7;
  other.PublishLimits(stale);
  pool->segment().zone(0).PublishLimits(stale);
  Scope scope;
  scope.nodes = {0};

  ASSERT_TRUE(pool->Recalculate(scope, ChangeContext{}).ok());
  const auto snapshot = pool->TakeSnapshot(false);

  EXPECT_EQ(snapshot->zones[0].batch, 63u);
  EXPECT_FALSE(*snapshot->zones[0].limits_stale);
  EXPECT_EQ(snapshot->zones[1].batch, 7u);
  EXPECT_TRUE(*snapshot->zones[1].limits_stale);
  EXPECT_EQ(snapshot->zones[1].fits_min_pages, 24576u);
  EXPECT_EQ(snapshot->zones[1].fits_max_pages, 45055u);
}

TEST_F(PoolSubjectTest, InitialisationIsThrottledAndLimitsFollowByThemselves) {
  PoolConfig config = SmallPool(dir_, kGiB);
  config.tunables = {{"pageset.policy", std::string("fixed")},
                     {"init.sections_per_second", int64_t{20}}};
  auto pool = PoolSubject::Create(config, TwoNodes(), &store_);
  ASSERT_TRUE(pool.ok());

  const auto early = (*pool)->TakeSnapshot(false);
  ASSERT_TRUE(Eventually([&] { return (*pool)->segment().Initialised(); }));
  const auto late = (*pool)->TakeSnapshot(false);

  EXPECT_EQ(early->zones[0].state, ZoneState::kInitialising);
  EXPECT_EQ(early->zones[0].batch, 7u);
  EXPECT_EQ(early->zones[0].high_min, 42u);
  EXPECT_EQ(late->zones[0].state, ZoneState::kReady);
  EXPECT_TRUE(Eventually([&] {
    return (*pool)->TakeSnapshot(false)->zones[0].high_min == 186u;
  })) << "512 MiB a node: 31/186";
}

}  // namespace
}  // namespace memtuned
