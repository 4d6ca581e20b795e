// SPDX-License-Identifier: Apache-2.0
// When limits are recomputed, from what, and that readers see them.
#include "core/recalculate.h"

#include <gtest/gtest.h>

#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"

namespace memtuned {
namespace {

using Trigger = RecalculateTrigger;

TEST(PolicyRecalculatesTest, IsEachErasListOfCauses) {
  const struct {
    Trigger trigger;
    bool fixed, others, memtuned;
  } rows[] = {{Trigger::kCreated, true, true, true},
              {Trigger::kSection, false, false, true},
              {Trigger::kInitialised, true, true, true},
              {Trigger::kCpus, false, true, true},
              {Trigger::kWatermark, false, true, true},
              {Trigger::kTunable, true, true, true},
              {Trigger::kRequest, true, true, true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(TriggerName(row.trigger));
    EXPECT_EQ(PolicyRecalculates(PagesetPolicy::kFixed, row.trigger),
              row.fixed);
    for (auto era : {PagesetPolicy::kWatermark, PagesetPolicy::kAdaptive,
                     PagesetPolicy::kAdaptiveHigh}) {
      EXPECT_EQ(PolicyRecalculates(era, row.trigger), row.others);
    }
    EXPECT_EQ(PolicyRecalculates(PagesetPolicy::kMemtuned, row.trigger),
              row.memtuned);
  }
}

class RecalculateTest : public testing::Test {
 protected:
  RecalculateTest()
      : pool_({.topology = TopologyBuilder("2 nodes, 8 cpus").Build(),
               .node_pages = {8 * kPagesPerSection}}) {}

  PagesetLimits Limits(uint32_t zone = 0) {
    return pool_.zone(zone).LimitsNow();
  }
  uint64_t Count(Trigger trigger) {
    return LoadRelaxed(
        pool_.segment().header().recalculations[static_cast<size_t>(trigger)]);
  }

  TestSegment pool_;
};

TEST_F(RecalculateTest, PublishesWhatTheFactsGive) {
  const auto targets =
      ComputeTargets(pool_.segment(), InputsNow(pool_.segment()));

  ASSERT_EQ(targets.size(), 2u);
  for (uint32_t zone : {0u, 1u}) {
    EXPECT_EQ(Limits(zone), targets[zone].limits);
    EXPECT_EQ(pool_.zone(zone).WatermarksNow(), targets[zone].watermarks);
  }
  EXPECT_EQ(Limits().batch, 63u);
  EXPECT_EQ(Limits().high_max, 8 * kPagesPerSection / 8 / 4);
}

TEST_F(RecalculateTest, FollowsEveryTunableAtOnce) {
  pool_.Set(TunableId::kPagesetBatchFactor, 2.0);
  EXPECT_EQ(Limits().batch, 126u);
  pool_.Set(TunableId::kPagesetFreeHighFactor, 5.0);
  EXPECT_EQ(Limits().free_high_threshold, 630u);
  pool_.Set(TunableId::kPagesetHighFraction, int64_t{16});
  EXPECT_EQ(Limits().high_min, 8 * kPagesPerSection / 16 / 4);
  pool_.Set(TunableId::kPagesetPolicy, std::string("fixed"));
  EXPECT_EQ(Limits().policy, PagesetPolicy::kFixed);
  EXPECT_EQ(Count(Trigger::kTunable), 4u);
}

TEST_F(RecalculateTest, DividesByTheCpusThatAreOnlineNow) {
  Store(pool_.segment().nodes()[0].online_cpus, 2u);

  Recalculate(pool_.segment(), Trigger::kCpus, kCreatorOwner);

  EXPECT_EQ(Limits(0).high_max, 8 * kPagesPerSection / 8 / 2);
  EXPECT_EQ(Limits(1).high_max, 8 * kPagesPerSection / 8 / 4);
}

TEST_F(RecalculateTest, ANodeThatLostItsCpusIsDividedByAllOnline) {
  Store(pool_.segment().nodes()[0].online_cpus, 0u);

  Recalculate(pool_.segment(), Trigger::kCpus, kCreatorOwner);

  EXPECT_EQ(Limits(0).high_max, 8 * kPagesPerSection / 8 / 8);
}

TEST_F(RecalculateTest, FixedTakesNewWatermarksButKeepsItsLimits) {
  pool_.Set(TunableId::kPagesetPolicy, std::string("fixed"));
  Store(pool_.segment().nodes()[0].online_cpus, 1u);
  const PagesetLimits before = Limits();

  pool_.Set(TunableId::kWatermarkScaleFactor, int64_t{1000});

  EXPECT_EQ(pool_.zone().WatermarksNow().low, 8 * kPagesPerSection / 10);
  EXPECT_EQ(Limits(), before);
  EXPECT_EQ(Count(Trigger::kWatermark), 0u);
}

TEST_F(RecalculateTest, OthersTakeTheLowMarkIntoTheirLimits) {
  pool_.Set(TunableId::kPagesetPolicy, std::string("watermark"));

  pool_.Set(TunableId::kWatermarkScaleFactor, int64_t{1000});

  EXPECT_EQ(Limits().high_min, 8 * kPagesPerSection / 10 / 4);
  EXPECT_EQ(Count(Trigger::kWatermark), 1u);
}

TEST_F(RecalculateTest, BoundsTheDepotByItsFractionUnderMemtunedAlone) {
  pool_.Set(TunableId::kDepotHighFraction, int64_t{16});
  EXPECT_EQ(LoadRelaxed(pool_.zone().shared().depot_max_pages),
            8 * kPagesPerSection / 16);
  pool_.Set(TunableId::kDepotHighFraction, int64_t{0});
  EXPECT_EQ(LoadRelaxed(pool_.zone().shared().depot_max_pages), 0u);
  pool_.Set(TunableId::kDepotHighFraction, int64_t{16});
  pool_.Set(TunableId::kPagesetPolicy, std::string("adaptive"));
  EXPECT_EQ(LoadRelaxed(pool_.zone().shared().depot_max_pages), 0u);
}

TEST_F(RecalculateTest, EachPublicationIsSeenByTheNextOperation) {
  PinnedToOneCpu pinned;
  auto allocator = pool_.MakeAllocator();
  allocator->Free(allocator->Allocate(0), 0);
  const uint32_t zone =
      LoadRelaxed(pool_.mapping().cpu_table[env::CurrentCpu()].zone);
  pool_.Set(TunableId::kPagesetBatchFactor, 4.0);

  allocator->Free(allocator->Allocate(0), 0);

  EXPECT_EQ(pool_.PagesetHere(zone).batch, 252u);
}

TEST(InputsWithTest, ReplacesOneTunableAndIgnoresWrongKinds) {
  RecalculateInputs inputs;

  inputs = InputsWith(inputs, TunableId::kWatermarkMinFreeKbytes, AutoValue{});
  EXPECT_EQ(inputs.min_free_kbytes, -1);
  inputs = InputsWith(inputs, TunableId::kWatermarkMinFreeKbytes, int64_t{512});
  EXPECT_EQ(inputs.min_free_kbytes, 512);
  inputs = InputsWith(inputs, TunableId::kPagesetPolicy,
                      std::string("no such policy"));
  EXPECT_EQ(inputs.policy, PagesetPolicy::kMemtuned);
}

}  // namespace
}  // namespace memtuned
