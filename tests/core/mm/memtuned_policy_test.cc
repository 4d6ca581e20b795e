// SPDX-License-Identifier: Apache-2.0
// What policy memtuned promises against every era, on the eras' own vectors
// and on random traces:
//   (a) no more pages moved in and out than by the era that moves fewest, plus
//       one batch per list;
//   (b) at most ceil(in / batch) + ceil(out / batch) holds per order;
//   (c) at most 64 blocks per hold;
//   (d) no more pages stranded than high_max.
// And no order-0 page leaves because of frees of high orders. All with the
// depot off: with it even fewer pages reach the zone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/mm/pageset.h"
#include "tests/core/mm/vector_run.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

std::vector<Era> Eras() {
  return {Fixed63378(), Watermark(), Adaptive(), AdaptiveHigh(), Chunked()};
}

uint64_t Batches(uint64_t pages) {
  return (pages + kVectorBatch - 1) / kVectorBatch;
}

enum class Shape { kCycle, kFreeOnly, kAllocateOnly };

struct Row {
  const char* name;
  Shape shape;
  int order;
  uint64_t n;
  int times;
};

void Perform(VectorRun& run, const Row& row) {
  switch (row.shape) {
    case Shape::kCycle:
      run.Cycle(row.order, row.n, row.times);
      break;
    case Shape::kFreeOnly:
      run.TakeFromZone(row.order, row.n);
      run.Free(row.order, row.n);
      break;
    case Shape::kAllocateOnly:
      run.Allocate(row.order, row.n);
      break;
  }
}

class MemtunedVectorTest : public testing::TestWithParam<Row> {};

TEST_P(MemtunedVectorTest, KeepsItsBounds) {
  const Row& row = GetParam();
  for (bool large_cache : {false, true}) {
    uint64_t fewest = ~uint64_t{0};
    for (const Era& era : Eras()) {
      VectorRun run(era, large_cache);
      Perform(run, row);
      fewest = std::min(fewest, run.Now().Pages());
    }

    VectorRun run(Memtuned(), large_cache);
    Perform(run, row);

    const Moved moved = run.Now();
    SCOPED_TRACE(testing::Message() << moved << ", fewest pages " << fewest);
    EXPECT_LE(moved.Pages(), fewest + kVectorBatch);
    EXPECT_LE(moved.holds, Batches(moved.in) + Batches(moved.out));
    EXPECT_LE(moved.hold_pages_max, uint64_t{64} << row.order);
    EXPECT_LE(moved.left, kVectorHighMax);
    EXPECT_EQ(moved.direct_in + moved.direct_out, 0u);
    EXPECT_EQ(ZoneChecker(run.pool().segment()).Check(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, MemtunedVectorTest,
    testing::Values(Row{"Order0Of40", Shape::kCycle, 0, 40, 100},
                    Row{"Order0Of300", Shape::kCycle, 0, 300, 100},
                    Row{"Order0Of1000", Shape::kCycle, 0, 1000, 100},
                    Row{"Order0Of5000", Shape::kCycle, 0, 5000, 20},
                    Row{"Order0FreeOnly", Shape::kFreeOnly, 0, 100000, 1},
                    Row{"Order0AllocateOnly", Shape::kAllocateOnly, 0, 100000,
                        1},
                    Row{"Order3Of20", Shape::kCycle, 3, 20, 1000},
                    Row{"Order3Of45", Shape::kCycle, 3, 45, 1000},
                    Row{"Order3Of100", Shape::kCycle, 3, 100, 200},
                    Row{"Order3FreeOnly", Shape::kFreeOnly, 3, 10000, 1}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(MemtunedSweepTest, MovesNoMoreThanAnyEraOverAllBurstLengths) {
  const auto sweep = [](const Era& era) {
    VectorRun run(era, /*large_cache=*/true);
    for (int i = 0; i < 50; ++i) {
      for (uint64_t n = 1; n <= 64; ++n) run.Cycle(3, n, 1);
    }
    return run.Now();
  };
  uint64_t fewest = ~uint64_t{0};
  for (const Era& era : Eras()) fewest = std::min(fewest, sweep(era).Pages());

  const Moved moved = sweep(Memtuned());

  EXPECT_LE(moved.Pages(), fewest + kVectorBatch) << moved;
  EXPECT_EQ(moved.free_high_flushes, 0u);
}

TEST(MemtunedFreeHighTest, LeavesOrderZeroPagesAlone) {
  VectorRun run(Memtuned(), /*large_cache=*/false);
  run.TakeFromZone(0, 400);
  run.TakeFromZone(3, 3000);
  run.Free(0, 400);

  run.Free(3, 3000);

  const Moved moved = run.Now();
  EXPECT_GT(moved.flushes, 0u);
  run.Allocate(0, 400);
  EXPECT_EQ(run.Now().refills, moved.refills);
}

// One step of a trace.
struct Step {
  bool allocate;
  int order;
  uint64_t blocks;
};

// Bursts as programs and network stacks make them: mostly order 0, lengths
// spread over four powers of ten, everything freed in the end or not.
std::vector<Step> RandomTrace(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  std::vector<Step> trace;
  uint64_t held[4] = {};
  const uint64_t phases = 1 + below(6);
  for (uint64_t phase = 0; phase < phases; ++phase) {
    const int order = below(10) < 6 ? 0 : static_cast<int>(1 + below(3));
    const uint64_t most = uint64_t{8} << below(order == 0 ? 9 : 6);
    const uint64_t cycles = 1 + below(12);
    const bool whole = below(3) != 0;
    for (uint64_t i = 0; i < cycles; ++i) {
      const uint64_t n = 1 + below(most);
      trace.push_back({true, order, n});
      held[order] += n;
      const uint64_t back = whole ? n : below(held[order] + 1);
      trace.push_back({false, order, back});
      held[order] -= back;
    }
  }
  return trace;
}

class MemtunedTraceTest : public testing::Test {
 protected:
  Moved Play(const std::vector<Step>& trace, const Era& era) {
    run_.Restart(era);
    for (const Step& step : trace) {
      step.allocate ? run_.Allocate(step.order, step.blocks)
                    : run_.Free(step.order, step.blocks);
    }
    return run_.Now();
  }

  VectorRun run_{Memtuned(), /*large_cache=*/true};
};

TEST_F(MemtunedTraceTest, MovesAboutAsFewPagesAsTheBestEraOfEachTrace) {
  const uint64_t traces = NumberFromEnvironment(
      "MEMTUNED_TRACES",
      std::max<uint64_t>(100, static_cast<uint64_t>(1000 * RunScale())));
  const std::vector<Era> eras = Eras();
  std::vector<double> sums(eras.size(), 0);
  double ours_sum = 0;
  uint64_t above = 0;
  double worst = 0;
  for (uint64_t seed = 0; seed < traces; ++seed) {
    const std::vector<Step> trace = RandomTrace(seed);
    uint64_t best = ~uint64_t{0};
    for (size_t i = 0; i < eras.size(); ++i) {
      const uint64_t pages = Play(trace, eras[i]).Pages();
      sums[i] += static_cast<double>(pages);
      best = std::min(best, pages);
    }
    const Moved ours = Play(trace, Memtuned());
    ours_sum += static_cast<double>(ours.Pages());
    const double limit = 1.1 * static_cast<double>(best) + kVectorBatch;
    worst = std::max(worst, static_cast<double>(ours.Pages()) - limit);
    if (static_cast<double>(ours.Pages()) > limit) {
      ++above;
      ADD_FAILURE() << "trace " << seed << ": best era " << best << ", "
                    << ours;
    }
    EXPECT_LE(ours.left, kVectorHighMax);
    EXPECT_LE(ours.hold_pages_max, 512u);
  }
  RecordProperty("mean_pages_ours",
                 std::to_string(ours_sum / static_cast<double>(traces)));
  for (size_t i = 0; i < eras.size(); ++i) {
    EXPECT_LE(ours_sum, sums[i]) << eras[i].name;
    std::printf("  %-24s %10.1f pages a trace\n", eras[i].name,
                sums[i] / static_cast<double>(traces));
  }
  std::printf("  %-24s %10.1f; %lu above their bound, worst by %.0f\n",
              "memtuned", ours_sum / static_cast<double>(traces),
              static_cast<unsigned long>(above), worst);
  EXPECT_EQ(ZoneChecker(run_.pool().segment()).Check(), "");
}

}  // namespace
}  // namespace memtuned
