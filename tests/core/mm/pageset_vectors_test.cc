// SPDX-License-Identifier: Apache-2.0
// The eras' test vectors, exactly, through a real zone and pageset. Each row
// says what a kernel of that era moves for one sequence of calls on one CPU.
// All pages move one way or the other: in - out = left + pages not freed.
#include <gtest/gtest.h>

#include "core/mm/pageset.h"
#include "tests/core/mm/vector_run.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

constexpr uint64_t kAny = ~uint64_t{0};

struct Vector {
  Era era;
  uint64_t n;
  int times;
  Moved expected;
};

void ExpectField(uint64_t actual, uint64_t expected, const char* field) {
  if (expected == kAny) return;
  EXPECT_EQ(actual, expected) << field;
}

void ExpectMoved(const Moved& actual, const Moved& expected) {
  ExpectField(actual.refills, expected.refills, "refills");
  ExpectField(actual.flushes, expected.flushes, "flushes");
  ExpectField(actual.free_high_flushes, expected.free_high_flushes,
              "free-high flushes");
  ExpectField(actual.holds, expected.holds, "holds");
  ExpectField(actual.in, expected.in, "pages in");
  ExpectField(actual.out, expected.out, "pages out");
  ExpectField(actual.left, expected.left, "left");
  ExpectField(actual.high, expected.high, "high");
  ExpectField(actual.hold_pages_max, expected.hold_pages_max,
              "most pages in a hold");
}

void ExpectSoundZone(VectorRun& run) {
  EXPECT_EQ(ZoneChecker(run.pool().segment()).Check(), "");
}

class OrderZeroTest : public testing::TestWithParam<Vector> {};

TEST_P(OrderZeroTest, MovesWhatItsEraMoves) {
  const Vector& v = GetParam();
  VectorRun run(v.era, /*large_cache=*/true);

  run.Cycle(0, v.n, v.times);

  SCOPED_TRACE(testing::Message() << v.era.name << ": " << run.Now());
  ExpectMoved(run.Now(), v.expected);
  ExpectSoundZone(run);
}

// refills, flushes, free-high, holds, in, out, left, high, most in a hold
INSTANTIATE_TEST_SUITE_P(
    Rows, OrderZeroTest,
    testing::Values(
        Vector{Fixed742(), 40, 100, {105, 100, 0, 205, 735, 700, 35, 42, 7}},
        Vector{Fixed63378(), 40, 100, {1, 0, 0, 1, 63, 0, 63, 378, 63}},
        Vector{Watermark(), 40, 100, {1, 0, 0, 1, 63, 0, 63, 530, 63}},
        Vector{Adaptive(), 40, 100, {1, 0, 0, 1, 63, 0, 63, kAny, 63}},
        Vector{AdaptiveHigh(), 40, 100, {1, 0, 0, 1, 63, 0, 63, kAny, 63}},
        Vector{Fixed742(),
               300,
               100,
               {3805, 3800, 0, 7605, 26635, 26600, 35, 42, 7}},
        Vector{Fixed63378(), 300, 100, {5, 0, 0, 5, 315, 0, 315, 378, 63}},
        Vector{Watermark(), 300, 100, {5, 0, 0, 5, 315, 0, 315, 530, 63}},
        Vector{Adaptive(), 300, 100, {3, 0, 0, 3, 441, 0, 441, 971, 252}},
        Vector{AdaptiveHigh(), 300, 100, {3, 0, 0, 3, 441, 0, 441, 971, 252}},
        Vector{Chunked(), 300, 100, {3, 0, 0, 3, 441, 0, 441, 971, 252}},
        Vector{Fixed742(),
               1000,
               100,
               {13805, 13800, 0, 27605, 96635, 96600, 35, 42, 7}},
        Vector{Fixed63378(),
               1000,
               100,
               {1105, 1100, 0, 2205, 69615, 69300, 315, 378, 63}},
        Vector{Watermark(),
               1000,
               100,
               {1443, 400, 0, 1843, 90909, 90800, 109, 530, 467}},
        Vector{Adaptive(), 1000, 100, {5, 0, 0, 5, 1953, 0, 1953, 2483, 1008}},
        Vector{
            AdaptiveHigh(), 1000, 100, {5, 0, 0, 5, 1953, 0, 1953, 2483, 1008}},
        Vector{Pinned252(),
               1000,
               100,
               {601, 501, 0, 2103, 94689, 94618, 71, 252, 189}},
        Vector{Adaptive(), 5000, 20, {7, 0, 0, 7, 5985, 0, 5985, 6515, 2016}},
        Vector{AdaptiveHigh(),
               5000,
               20,
               {7, 0, 0, 7, 5985, 0, 5985, 6515, 2016}}));

class FreeOnlyTest : public testing::TestWithParam<Vector> {};

TEST_P(FreeOnlyTest, MovesWhatItsEraMoves) {
  const Vector& v = GetParam();
  VectorRun run(v.era, /*large_cache=*/true);
  run.TakeFromZone(0, v.n);

  run.Free(0, v.n);

  SCOPED_TRACE(testing::Message() << v.era.name << ": " << run.Now());
  ExpectMoved(run.Now(), v.expected);
  ExpectSoundZone(run);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, FreeOnlyTest,
    testing::Values(
        Vector{
            Fixed742(), 100000, 1, {0, 14280, 0, 14280, 0, 99960, 40, 42, 7}},
        Vector{Fixed63378(),
               100000,
               1,
               {0, 1582, 0, 1582, 0, 99666, 334, 378, 63}},
        Vector{
            Watermark(), 100000, 1, {0, 216, 0, 216, 0, 99912, 88, 530, 467}},
        Vector{
            Adaptive(), 100000, 1, {0, 51, 0, 51, 0, 98825, 1175, 2079, 2016}},
        Vector{AdaptiveHigh(),
               100000,
               1,
               {0, 51, 0, 51, 0, 98825, 1175, 2079, 2016}},
        Vector{
            Chunked(), 100000, 1, {0, 51, 0, 1570, 0, 98825, 1175, 2079, 63}}));

class AllocateOnlyTest : public testing::TestWithParam<Vector> {};

TEST_P(AllocateOnlyTest, MovesWhatItsEraMoves) {
  const Vector& v = GetParam();
  VectorRun run(v.era, /*large_cache=*/true);

  run.Allocate(0, v.n);

  SCOPED_TRACE(testing::Message() << v.era.name << ": " << run.Now());
  ExpectMoved(run.Now(), v.expected);
  ExpectSoundZone(run);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, AllocateOnlyTest,
    testing::Values(
        Vector{
            Fixed742(), 100000, 1, {14286, 0, 0, 14286, 100002, 0, 2, 42, 7}},
        Vector{Fixed63378(),
               100000,
               1,
               {1588, 0, 0, 1588, 100044, 0, 44, 378, 63}},
        Vector{
            Watermark(), 100000, 1, {1588, 0, 0, 1588, 100044, 0, 44, 530, 63}},
        Vector{
            Adaptive(), 100000, 1, {54, 0, 0, 54, 100737, 0, 737, 98304, 2016}},
        Vector{AdaptiveHigh(),
               100000,
               1,
               {54, 0, 0, 54, 100737, 0, 737, 98304, 2016}}));

// Order 3: refills, free-high flushes and holds with the cache flag clear and
// set.
struct OrderThreeVector {
  Era era;
  uint64_t n;
  int times;
  uint64_t refills[2], free_high[2], holds[2];
};

class OrderThreeTest : public testing::TestWithParam<OrderThreeVector> {};

TEST_P(OrderThreeTest, MovesWhatItsEraMoves) {
  const OrderThreeVector& v = GetParam();
  for (int flag = 0; flag < 2; ++flag) {
    VectorRun run(v.era, /*large_cache=*/flag == 1);

    run.Cycle(3, v.n, v.times);

    const Moved moved = run.Now();
    SCOPED_TRACE(testing::Message() << v.era.name << ", flag " << flag << ", "
                                    << v.n << " blocks: " << moved);
    ExpectField(moved.refills, v.refills[flag], "refills");
    ExpectField(moved.free_high_flushes, v.free_high[flag], "free-high");
    ExpectField(moved.holds, v.holds[flag], "holds");
    ExpectSoundZone(run);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, OrderThreeTest,
    testing::Values(
        OrderThreeVector{Watermark(), 20, 1000, {3, 3}, {0, 0}, {3, 3}},
        OrderThreeVector{
            Adaptive(), 20, 1000, {3000, 3000}, {12000, 2000}, {15000, 5000}},
        OrderThreeVector{AdaptiveTimes(5), 20, 1000, {3, 3}, {0, 0}, {3, 3}},
        OrderThreeVector{AdaptiveHigh(), 20, 1000, {3, 3}, {0, 0}, {3, 3}},
        OrderThreeVector{Watermark(), 45, 1000, {7, 7}, {0, 0}, {7, 7}},
        OrderThreeVector{
            Adaptive(), 45, 1000, {7000, 6001}, {37000, 5000}, {44000, 11001}},
        OrderThreeVector{AdaptiveTimes(5),
                         45,
                         1000,
                         {7000, 6001},
                         {5000, 1000},
                         {12000, 7001}},
        OrderThreeVector{AdaptiveHigh(),
                         45,
                         1000,
                         {7000, 6001},
                         {4000, 1000},
                         {11000, 7001}},
        OrderThreeVector{
            Watermark(), 100, 200, {3000, 3000}, {7600, 7600}, {10800, 10800}},
        OrderThreeVector{
            Adaptive(), 100, 200, {3000, 2801}, {18400, 2400}, {21400, 5201}},
        OrderThreeVector{AdaptiveHigh(),
                         100,
                         200,
                         {3000, 2801},
                         {11800, 1600},
                         {14800, 4401}}));

class OrderThreeFreeOnlyTest : public testing::TestWithParam<OrderThreeVector> {
};

TEST_P(OrderThreeFreeOnlyTest, MovesWhatItsEraMoves) {
  const OrderThreeVector& v = GetParam();
  for (int flag = 0; flag < 2; ++flag) {
    VectorRun run(v.era, /*large_cache=*/flag == 1);
    run.TakeFromZone(3, v.n);

    run.Free(3, v.n);

    const Moved moved = run.Now();
    SCOPED_TRACE(testing::Message()
                 << v.era.name << ", flag " << flag << ": " << moved);
    ExpectField(moved.refills, 0, "refills");
    ExpectField(moved.free_high_flushes, v.free_high[flag], "free-high");
    EXPECT_LE(moved.holds, v.free_high[flag] + 1);
    EXPECT_GE(moved.holds, v.free_high[flag]);
    ExpectSoundZone(run);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, OrderThreeFreeOnlyTest,
    testing::Values(
        OrderThreeVector{Watermark(), 10000, 1, {0, 0}, {9933, 9933}, {}},
        OrderThreeVector{Adaptive(), 10000, 1, {0, 0}, {9992, 1249}, {}},
        OrderThreeVector{AdaptiveHigh(), 10000, 1, {0, 0}, {9959, 1245}, {}}));

struct SweepRow {
  Era era;
  uint64_t free_high_flushes;
};

class FreeHighSweepTest : public testing::TestWithParam<SweepRow> {};

TEST_P(FreeHighSweepTest, FlushesAsOftenAsItsThresholdSays) {
  VectorRun run(GetParam().era, /*large_cache=*/true);

  for (int i = 0; i < 50; ++i) {
    for (uint64_t n = 1; n <= 64; ++n) run.Cycle(3, n, 1);
  }

  EXPECT_EQ(run.Now().free_high_flushes, GetParam().free_high_flushes);
  ExpectSoundZone(run);
}

INSTANTIATE_TEST_SUITE_P(Thresholds, FreeHighSweepTest,
                         testing::Values(SweepRow{AdaptiveTimes(1), 11200},
                                         SweepRow{AdaptiveTimes(2), 8400},
                                         SweepRow{AdaptiveTimes(4), 4000},
                                         SweepRow{AdaptiveTimes(5), 2400},
                                         SweepRow{AdaptiveTimes(6), 1200},
                                         SweepRow{AdaptiveTimes(8), 50},
                                         SweepRow{AdaptiveHigh(), 2250},
                                         SweepRow{Watermark(), 150}));

TEST(FreeHighTest, EvictsTheHotOrderZeroPagesFrom67On) {
  for (const Era& era : {Adaptive(), AdaptiveHigh()}) {
    VectorRun run(era, /*large_cache=*/false);
    run.TakeFromZone(0, 400);
    run.TakeFromZone(3, 2);

    run.Free(0, 400);
    run.Free(3, 2);

    EXPECT_EQ(run.Now().left, 0u) << era.name;
    EXPECT_EQ(run.Now().free_high_flushes, 1u) << era.name;
  }
}

TEST(FreeHighTest, EvictsNothingHereUpTo66) {
  VectorRun run(Watermark(), /*large_cache=*/false);
  run.TakeFromZone(0, 400);
  run.TakeFromZone(3, 2);

  run.Free(0, 400);
  run.Free(3, 2);

  EXPECT_EQ(run.Now().left, 416u);
}

// 6.16's rule with small numbers, every intermediate state.
class StepTraceTest : public testing::Test {
 protected:
  StepTraceTest() : run_({"small", SmallLimits()}, /*large_cache=*/false) {}

  static PagesetLimits SmallLimits() {
    PagesetLimits limits =
        Limits(PagesetPolicy::kAdaptiveHigh, 4, 16, 64, 4 + 16 / 2);
    limits.scale_max = 2;
    return limits;
  }

  void ExpectState(const char* after, uint32_t count, uint32_t high,
                   uint32_t free_count, uint32_t alloc_factor, uint64_t refills,
                   uint64_t flushes, uint64_t in, uint64_t out) {
    SCOPED_TRACE(after);
    const Moved moved = run_.Now();
    EXPECT_EQ(moved.left, count);
    EXPECT_EQ(moved.high, high);
    EXPECT_EQ(run_.pageset().free_count, free_count);
    EXPECT_EQ(run_.pageset().alloc_factor, alloc_factor);
    EXPECT_EQ(moved.refills, refills);
    EXPECT_EQ(moved.flushes, flushes);
    EXPECT_EQ(moved.in, in);
    EXPECT_EQ(moved.out, out);
  }

  VectorRun run_;
};

TEST_F(StepTraceTest, FollowsTheRulesStepByStep) {
  ExpectState("start", 0, 0, 0, 0, 0, 0, 0, 0);
  run_.Allocate(0, 1);
  ExpectState("1st order-0 alloc", 3, 20, 0, 1, 1, 0, 4, 0);
  run_.Allocate(0, 3);
  ExpectState("4th", 0, 20, 0, 1, 1, 0, 4, 0);
  run_.Allocate(0, 1);
  ExpectState("5th", 7, 28, 0, 2, 2, 0, 12, 0);
  run_.Allocate(0, 8);
  ExpectState("13th", 15, 44, 0, 2, 3, 0, 28, 0);
  run_.Allocate(0, 27);
  ExpectState("40th", 4, 60, 0, 2, 4, 0, 44, 0);
  run_.Free(0, 1);
  ExpectState("1st order-0 free", 5, 60, 1, 1, 4, 0, 44, 0);
  run_.Free(0, 14);
  ExpectState("15th", 19, 60, 15, 0, 4, 0, 44, 0);
  run_.Free(0, 25);
  ExpectState("40th free", 44, 60, 16, 0, 4, 0, 44, 0);
  run_.Allocate(0, 4);
  ExpectState("4 order-0 allocs", 40, 60, 1, 0, 4, 0, 44, 0);
  run_.Free(0, 4);
  ExpectState("4 order-0 frees", 44, 60, 5, 0, 4, 0, 44, 0);
  run_.Allocate(1, 4);
  ExpectState("4 order-1 allocs", 44, 64, 0, 0, 6, 0, 52, 0);
  run_.Free(1, 4);
  ExpectState("4 order-1 frees", 52, 64, 8, 0, 6, 0, 52, 0);
  run_.TakeFromZone(1, 20);
  run_.Free(1, 20);
  ExpectState("20 more order-1 frees", 0, 16, 16, 0, 6, 18, 52, 92);
  ExpectSoundZone(run_);
}

}  // namespace
}  // namespace memtuned
