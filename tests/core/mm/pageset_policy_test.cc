// SPDX-License-Identifier: Apache-2.0
// Limits as functions: batch sizes and high for every era, against worked
// examples of real machines.
#include "core/mm/pageset_policy.h"

#include <gtest/gtest.h>

namespace memtuned {
namespace {

constexpr uint64_t kMiB = 1u << 20;

TEST(RawBatchTest, StepsAtTheKnownSizes) {
  const struct {
    uint64_t first;
    uint32_t batch;
  } steps[] = {{0, 0},      {8192, 1},   {12288, 3},  {24576, 7},
               {45056, 15}, {90112, 31}, {176128, 63}};
  for (const auto& step : steps) {
    EXPECT_EQ(RawBatch(step.first, 4096, kMiB), step.batch) << step.first;
    if (step.first == 0) continue;
    EXPECT_LT(RawBatch(step.first - 1, 4096, kMiB), step.batch) << step.first;
  }
  EXPECT_EQ(RawBatch(uint64_t{1} << 40, 4096, kMiB), 63u);
}

// Seen on a kernel, one line a tick.
TEST(DecayedHighTest, ComesDownAsTheKernelsDoes) {
  PagesetLimits limits;
  limits.batch = 63;
  limits.high_min = 1000;
  limits.high_max = 40000;
  PolicyState state;
  state.count = 36472;
  state.high = 37030;

  state.high = DecayedHigh(limits, state);
  EXPECT_EQ(state.high, 34456u);
  state.count = state.high;
  EXPECT_EQ(DecayedHigh(limits, state), 32440u);
  state.count = 0;  // never by more than an eighth
  EXPECT_EQ(DecayedHigh(limits, state), 34456u - 34456u / 8);
  state.high = 1001;
  EXPECT_EQ(DecayedHigh(limits, state), 1000u);
  state.high = 1000;
  EXPECT_EQ(DecayedHigh(limits, state), 1000u);
  state.high = 7;  // below high_min: clamped when it is next used, not here
  EXPECT_EQ(DecayedHigh(limits, state), 7u);
}

TEST(RawBatchTest, IsOneLessThanAPowerOfTwoAndNeverFalls) {
  uint32_t before = 0;
  for (uint64_t pages = 0; pages < 400000; ++pages) {
    const uint32_t batch = RawBatch(pages, 4096, kMiB);
    ASSERT_EQ(batch & (batch + 1), 0u) << pages;
    ASSERT_GE(batch, before) << pages;
    before = batch;
  }
}

// The rewrite of 6.19: r = min(M >> 12, 256 KiB / P), 1 when r <= 1.
TEST(RawBatchTest, AgreesWithTheLaterFormula) {
  for (uint64_t pages = 0; pages < 2000000; ++pages) {
    const uint64_t r = std::min<uint64_t>(pages >> 12, 64);
    uint32_t expected = 1;
    if (r > 1) {
      expected = 1;
      while (2 * expected <= r + r / 2) expected *= 2;
      expected -= 1;
    }
    const uint32_t raw = RawBatch(pages, 4096, kMiB);
    ASSERT_EQ(std::max(1u, raw), expected) << pages;
  }
}

TEST(RawBatchTest, OfLargePagesIsAtMostThree) {
  EXPECT_EQ(RawBatch(uint64_t{1} << 30, 65536, kMiB), 3u);
  EXPECT_EQ(RawBatch(8192, 65536, kMiB), 1u);
  EXPECT_EQ(RawBatch(12288, 65536, kMiB), 3u);
}

TEST(ManagedPagesOfBatchTest, IsTheInverseOfRawBatch) {
  const struct {
    uint32_t batch;
    uint64_t first, last;
  } ranges[] = {{1, 0, 12287},       {3, 12288, 24575},
                {7, 24576, 45055},   {15, 45056, 90111},
                {31, 90112, 176127}, {63, 176128, UINT64_MAX}};
  for (const auto& r : ranges) {
    const PageRange range = ManagedPagesOfBatch(r.batch, 4096, kMiB);
    EXPECT_EQ(range.first, r.first) << r.batch;
    EXPECT_EQ(range.last, r.last) << r.batch;
  }
  EXPECT_EQ(ManagedPagesOfBatch(3, 65536, kMiB).last, UINT64_MAX);
}

TEST(EffectiveCpusTest, IsTheNodesOrAllOnlineOrOne) {
  EXPECT_EQ(EffectiveCpus(128, 256), 128);
  EXPECT_EQ(EffectiveCpus(0, 224), 224);
  EXPECT_EQ(EffectiveCpus(0, 0), 1);
}

// A machine, and what each era makes of it. 0 columns: not given.
struct Machine {
  const char* name;
  uint64_t managed;
  int cpus;
  uint64_t watermark_low;
  uint32_t batch_before_419, batch;
  uint32_t fixed_high, high_min, high_max, high_of_100;
};

class MachineTest : public testing::TestWithParam<Machine> {
 protected:
  LimitInputs Inputs(PagesetPolicy policy) const {
    LimitInputs in;
    in.policy = policy;
    in.managed_pages = GetParam().managed;
    in.watermark_low_pages = GetParam().watermark_low;
    in.cpus = GetParam().cpus;
    return in;
  }
};

TEST_P(MachineTest, HasTheBatchOfBothTimes) {
  LimitInputs in = Inputs(PagesetPolicy::kFixed);
  EXPECT_EQ(ComputeLimits(in).batch, GetParam().batch);
  if (GetParam().batch_before_419 == 0) return;

  in.batch_cap_bytes = kMiB / 2;
  EXPECT_EQ(ComputeLimits(in).batch, GetParam().batch_before_419);
}

TEST_P(MachineTest, HasSixBatchesUpTo513) {
  if (GetParam().fixed_high == kNil) return;
  const PagesetLimits limits = ComputeLimits(Inputs(PagesetPolicy::kFixed));

  EXPECT_EQ(limits.high_min, GetParam().fixed_high);
  EXPECT_EQ(limits.high_max, GetParam().fixed_high);
}

TEST_P(MachineTest, HasItsShareOfTheLowWatermarkFrom514On) {
  const PagesetLimits limits = ComputeLimits(Inputs(PagesetPolicy::kWatermark));

  EXPECT_EQ(limits.high_min, GetParam().high_min);
  EXPECT_EQ(limits.high_max, GetParam().high_min);
}

TEST_P(MachineTest, FloatsUpToAnEighthFrom67On) {
  for (PagesetPolicy policy :
       {PagesetPolicy::kAdaptive, PagesetPolicy::kAdaptiveHigh,
        PagesetPolicy::kMemtuned}) {
    const PagesetLimits limits = ComputeLimits(Inputs(policy));
    EXPECT_EQ(limits.high_min, GetParam().high_min);
    EXPECT_EQ(limits.high_max, GetParam().high_max);
  }
}

TEST_P(MachineTest, TakesAFractionOfOneHundred) {
  if (GetParam().high_of_100 == 0) return;
  for (PagesetPolicy policy :
       {PagesetPolicy::kWatermark, PagesetPolicy::kAdaptive,
        PagesetPolicy::kAdaptiveHigh, PagesetPolicy::kMemtuned}) {
    LimitInputs in = Inputs(policy);
    in.high_fraction = 100;
    const PagesetLimits limits = ComputeLimits(in);
    EXPECT_EQ(limits.high_min, GetParam().high_of_100);
    EXPECT_EQ(limits.high_max, GetParam().high_of_100);
    EXPECT_EQ(limits.batch, GetParam().batch);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, MachineTest,
    testing::Values(
        Machine{"DMA", 3840, 2, 153, 1, 1, 0, 76, 240, 19},
        Machine{"OneSection", 32768, 128, 320, 7, 7, 42, 28, 32, 28},
        Machine{"Small", 163840, 2, 1011, 31, 31, 186, 505, 10240, 819},
        Machine{"OneGiB", 262144, 4, 1286, 31, 63, 378, 321, 8192, 655},
        Machine{"Dma32", 772918, 2, 2530, 31, 63, 378, 1265, 48307, 3864},
        Machine{"EightGiB", 2195456, 2, 5158, 31, 63, 378, 2579, 137216, 10977},
        Machine{"SixteenGiB", 4194304, 8, 8290, 31, 63, 378, 1036, 65536, 5242},
        Machine{"SixtyFourGiB", 16777216, 32, 24969, 31, 63, 378, 780, 65536,
                5242},
        Machine{"Seed", 67108864, 128, 78693, 31, 63, 378, 614, 65536, 5242},
        Machine{"HalfTiB", 134217728, 112, 150601, 31, 63, 378, 1344, 149796,
                11983},
        Machine{"Epyc", 201326592, 384, 221392, 31, 63, 378, 576, 65536, 5242},
        Machine{"NoCpus", 33554432, EffectiveCpus(0, 224), 40242, 31, 63, 378,
                252, 18724, 1497},
        // A 24 GiB guest whose Normal zone grows.
        Machine{"GuestDmaStart", 3840, 2, 85, 0, 1, kNil, 42, 240, 0},
        Machine{"GuestDmaLater", 3840, 2, 22, 0, 1, kNil, 11, 240, 0},
        Machine{"GuestDma32Start", 772918, 2, 17353, 0, 63, kNil, 8676, 48307,
                0},
        Machine{"GuestDma32Later", 772918, 2, 4757, 0, 63, kNil, 2378, 48307,
                0},
        Machine{"GuestNormalStart", 163840, 2, 3678, 0, 31, kNil, 1839, 10240,
                0},
        Machine{"GuestNormalLater", 2654208, 2, 16337, 0, 63, kNil, 8168,
                165888, 0}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(FixedFractionTest, IsNotDividedByCpusAndDragsBatchAlong) {
  const struct {
    uint64_t managed;
    uint32_t fraction, high, batch;
  } rows[] = {{67108864, 8, 8388608, 96},
              {67108864, 1000, 67108, 96},
              {4194304, 1000, 4194, 96},
              {163840, 1000, 163, 40}};
  for (const auto& row : rows) {
    LimitInputs in;
    in.policy = PagesetPolicy::kFixed;
    in.managed_pages = row.managed;
    in.high_fraction = row.fraction;
    in.cpus = 128;
    const PagesetLimits limits = ComputeLimits(in);
    EXPECT_EQ(limits.high_max, row.high);
    EXPECT_EQ(limits.batch, row.batch);
  }
}

TEST(FractionTest, AboveTheZoneGivesFourBatches) {
  LimitInputs in;
  in.policy = PagesetPolicy::kAdaptiveHigh;
  in.managed_pages = 2654208;
  in.high_fraction = 2147483647;
  in.cpus = 2;

  EXPECT_EQ(ComputeLimits(in).high_min, 252u);
  EXPECT_EQ(ComputeLimits(in).high_max, 252u);
}

TEST(FractionTest, OfEightIsAnEighthOfTheZoneSharedOut) {
  LimitInputs in;
  in.policy = PagesetPolicy::kAdaptiveHigh;
  in.managed_pages = 2654208;
  in.high_fraction = 8;
  in.cpus = 2;

  EXPECT_EQ(ComputeLimits(in).high_min, 165888u);
}

TEST(FreeHighThresholdTest, IsWhatEachEraSays) {
  LimitInputs in;
  in.managed_pages = 67108864;
  in.watermark_low_pages = 530 * 384;
  in.cpus = 384;
  const auto threshold = [&](PagesetPolicy policy, double factor) {
    in.policy = policy;
    in.free_high_factor = factor;
    return ComputeLimits(in).free_high_threshold;
  };

  EXPECT_EQ(threshold(PagesetPolicy::kFixed, 1), kNil);
  EXPECT_EQ(threshold(PagesetPolicy::kWatermark, 1), 1u);
  EXPECT_EQ(threshold(PagesetPolicy::kAdaptive, 1), 63u);
  EXPECT_EQ(threshold(PagesetPolicy::kAdaptive, 5), 315u);
  EXPECT_EQ(threshold(PagesetPolicy::kAdaptiveHigh, 1), 63u + 265);
}

TEST(BatchFactorTest, ScalesBatchAndWhatHangsOnIt) {
  LimitInputs in;
  in.policy = PagesetPolicy::kFixed;
  in.managed_pages = 262144;
  for (const auto& [factor, batch] :
       {std::pair{0.25, 15u}, {0.5, 31u}, {2.0, 126u}, {8.0, 504u}}) {
    in.batch_factor = factor;
    EXPECT_EQ(ComputeLimits(in).batch, batch);
    EXPECT_EQ(ComputeLimits(in).high_max, 6 * batch);
  }
}

TEST(ComputeLimitsTest, NeverLetsTheBoundsCross) {
  LimitInputs in;
  in.policy = PagesetPolicy::kMemtuned;
  in.managed_pages = 1000;
  in.watermark_low_pages = 900;

  const PagesetLimits limits = ComputeLimits(in);

  EXPECT_EQ(limits.high_min, 900u);
  EXPECT_GE(limits.high_max, limits.high_min);
}

TEST(PolicyCachesTest, IsOrderZeroAloneUpTo513) {
  for (int order = 0; order <= kMaxOrder; ++order) {
    EXPECT_EQ(PolicyCaches(PagesetPolicy::kFixed, order), order == 0);
    EXPECT_EQ(PolicyCaches(PagesetPolicy::kAdaptive, order),
              order <= 3 || order == 9);
  }
}

TEST(PolicyNameTest, RoundTrips) {
  for (int i = 0; i < kNumPolicies; ++i) {
    const auto policy = static_cast<PagesetPolicy>(i);
    EXPECT_EQ(PolicyFromName(PolicyName(policy)), policy);
  }
  EXPECT_EQ(PolicyFromName("fixed "), std::nullopt);
  EXPECT_EQ(PolicyFromName(""), std::nullopt);
}

// What the zone's condition does to one free (order of tests: free-high,
// reclaim, fixed, below-high, growth).
class DecideFlushTest : public testing::Test {
 protected:
  DecideFlushTest() {
    limits_.policy = PagesetPolicy::kAdaptiveHigh;
    limits_.batch = 63;
    limits_.high_min = 530;
    limits_.high_max = 10000;
    state_.high = 2000;
    state_.free_count = 300;
  }
  PagesetLimits limits_;
  PolicyState state_;
};

TEST_F(DecideFlushTest, ReclaimLowersHighAndHoldsAgainstFourBatches) {
  state_.count = 300;

  const FlushDecision flush =
      DecideFlush(limits_, {.reclaim_active = true}, false, state_);

  EXPECT_EQ(state_.high, 1700u);
  EXPECT_EQ(flush.pages, 189u);  // clamp(300, 63, 252 - 63)
}

TEST_F(DecideFlushTest, ReclaimNeverGoesBelowHighMin) {
  state_.high = 600;
  state_.count = 100;

  const FlushDecision flush =
      DecideFlush(limits_, {.reclaim_active = true}, false, state_);

  EXPECT_EQ(state_.high, 530u);
  EXPECT_EQ(flush.pages, 0u);
}

TEST_F(DecideFlushTest, BelowHighAlwaysFlushesAFullList) {
  state_.count = 1500;

  const FlushDecision flush =
      DecideFlush(limits_, {.below_high = true}, false, state_);

  EXPECT_EQ(state_.high, 1700u);
  EXPECT_EQ(flush.pages, 300u);
}

TEST_F(DecideFlushTest, GrowthTakesEffectFromTheNextFree) {
  state_.count = 2000;
  state_.free_count = 2016;

  const FlushDecision flush = DecideFlush(limits_, {}, false, state_);

  EXPECT_EQ(state_.high, 2079u);
  EXPECT_EQ(flush.pages, 1937u);  // against the old high: 2000 - 63
}

TEST_F(DecideFlushTest, FreeHighLowersHighByTheWholeStep) {
  state_.high = 3000;
  state_.count = 500;

  const FlushDecision flush = DecideFlush(limits_, {}, true, state_);

  EXPECT_TRUE(flush.free_high);
  EXPECT_EQ(flush.pages, 500u);
  EXPECT_EQ(state_.high, 984u);
}

TEST_F(DecideFlushTest, ClampsLazilyWhenLimitsShrank) {
  limits_.high_max = 1000;
  state_.count = 1500;
  state_.free_count = 0;

  const FlushDecision flush = DecideFlush(limits_, {}, false, state_);

  EXPECT_EQ(state_.high, 1000u);
  EXPECT_EQ(flush.pages, 63u);
}

TEST_F(DecideFlushTest, WithoutLimitsNeverDividesOrHangs) {
  for (int p = 0; p < kNumPolicies; ++p) {
    PagesetLimits limits;
    limits.policy = static_cast<PagesetPolicy>(p);
    PolicyState state;
    state.count = 1;
    EXPECT_EQ(RefillBlocks(limits, {}, 0, state), 1u);
    EXPECT_EQ(DecideFlush(limits, {}, false, state).pages, 1u);
  }
}

TEST(RefillBlocksTest, HoldsGrowthBackBelowTheHighWatermark) {
  PagesetLimits limits;
  limits.policy = PagesetPolicy::kAdaptiveHigh;
  limits.batch = 63;
  limits.high_min = 530;
  limits.high_max = 10000;
  PolicyState state;

  RefillBlocks(limits, {.below_high = true}, 0, state);

  EXPECT_EQ(state.high, 530u);
}

TEST(RefillBlocksTest, FetchesAtLeastTwoBlocksOfHighOrders) {
  PagesetLimits limits;
  limits.policy = PagesetPolicy::kAdaptive;
  limits.batch = 63;
  limits.high_min = 530;
  limits.high_max = 10000;
  PolicyState state;

  EXPECT_EQ(RefillBlocks(limits, {}, 1, state), 31u);
  EXPECT_EQ(RefillBlocks(limits, {}, 3, state), 7u);
  EXPECT_EQ(RefillBlocks(limits, {}, 9, state), 2u);
  EXPECT_EQ(state.alloc_factor, 0);
}

}  // namespace
}  // namespace memtuned
