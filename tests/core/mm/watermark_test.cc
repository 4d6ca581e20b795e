// SPDX-License-Identifier: Apache-2.0
// Watermarks, against captures of real machines.
#include "core/mm/watermark.h"

#include <gtest/gtest.h>

namespace memtuned {
namespace {

Watermarks Only(uint64_t managed, uint64_t min_free_kbytes,
                uint32_t scale = 10) {
  const WatermarkZone zone{managed, false};
  return ComputeWatermarks({&zone, 1}, min_free_kbytes, scale, 4096)[0];
}

TEST(DefaultMinFreeKbytesTest, IsTheRootWithinItsBounds) {
  EXPECT_EQ(DefaultMinFreeKbytes(0), 128u);
  EXPECT_EQ(DefaultMinFreeKbytes(1 << 20), 4096u);
  EXPECT_EQ(DefaultMinFreeKbytes(uint64_t{1} << 40), 262144u);
  EXPECT_EQ(DefaultMinFreeKbytes(UINT64_MAX / 16), 262144u);
}

// Zones of equal nodes: their memory in all, the default and the low mark.
TEST(ComputeWatermarksTest, GivesTheLowMarksOfWorkedExamples) {
  const struct {
    uint64_t managed;
    int nodes;
    uint64_t min_free_kbytes, low;
  } rows[] = {{3840, 1, 495, 153},
              {32768, 2, 2048, 320},
              {163840, 1, 3238, 1011},
              {262144, 1, 4096, 1286},
              {772918, 1, 7033, 2530},
              {2195456, 1, 11853, 5158},
              {4194304, 1, 16384, 8290},
              {16777216, 1, 32768, 24969},
              {67108864, 2, 92681, 78693},
              {134217728, 2, 131072, 150601},
              {201326592, 2, 160529, 221392},
              {33554432, 3, 80264, 40242}};
  for (const auto& row : rows) {
    const auto nodes = static_cast<uint64_t>(row.nodes);
    const std::vector<WatermarkZone> zones(nodes, {row.managed, false});
    EXPECT_EQ(DefaultMinFreeKbytes(row.managed * nodes * 4),
              row.min_free_kbytes)
        << row.managed;
    const auto marks = ComputeWatermarks(zones, row.min_free_kbytes, 10, 4096);
    EXPECT_EQ(marks[0].low, row.low) << row.managed;
    EXPECT_EQ(marks.back(), marks[0]);
  }
}

// A guest with DMA, DMA32 and a growing Normal zone; 67584 KiB are the huge
// pages' recommendation: 3 x 512 x 11 pages.
TEST(ComputeWatermarksTest, AgreesWithAGrowingGuest) {
  const WatermarkZone start[] = {
      {3840, false}, {772918, false}, {163840, false}, {0, true}};
  const WatermarkZone later[] = {
      {3840, false}, {772918, false}, {2654208, false}, {0, true}};

  const auto before = ComputeWatermarks(start, 67584, 10, 4096);
  const auto after = ComputeWatermarks(later, 67584, 10, 4096);

  EXPECT_EQ(before[2], (Watermarks{2943, 3678, 4413, 5148}));
  EXPECT_EQ(before[0].low, 85u);
  EXPECT_EQ(before[1].low, 17353u);
  EXPECT_EQ(before[1].min, 13883u);
  EXPECT_EQ(after[2], (Watermarks{13070, 16337, 19604, 22871}));
  EXPECT_EQ(after[1].min, 3806u);
  EXPECT_EQ(after[1].low, 4757u);
  EXPECT_EQ(after[0].low, 22u);
  EXPECT_EQ(after[3], (Watermarks{32, 32, 32, 32}));
}

TEST(ComputeWatermarksTest, FollowsTheScaleFactorOfThatGuest) {
  const WatermarkZone zones[] = {
      {3840, false}, {772918, false}, {2654208, false}, {0, true}};

  EXPECT_EQ(ComputeWatermarks(zones, 67584, 100, 4096)[2].low, 39612u);
  EXPECT_EQ(ComputeWatermarks(zones, 67584, 10, 4096)[2].low, 16337u);
}

// A sequence of settings on an arm64 machine with two zones.
TEST(ComputeWatermarksTest, AgreesWithASequenceOfSettings) {
  const WatermarkZone zones[] = {{630079, false}, {241951, false}};

  const auto first = ComputeWatermarks(zones, 7458, 10, 4096);
  EXPECT_EQ(first[1].min, 517u);
  EXPECT_EQ(first[0].min, 1346u);
  const auto more = ComputeWatermarks(zones, 10240, 10, 4096);
  EXPECT_EQ(more[1], (Watermarks{710, 951, 1192, 1433}));
  EXPECT_EQ(more[0].min, 1849u);
  const auto wider = ComputeWatermarks(zones, 10240, 20, 4096);
  EXPECT_EQ(wider[1], (Watermarks{710, 1193, 1676, 2159}));
}

TEST(ComputeWatermarksTest, ClampsMovableZonesByThemselves) {
  const WatermarkZone zones[] = {{1 << 20, false}, {1 << 16, true}};

  const auto marks = ComputeWatermarks(zones, 4096, 10, 4096);

  EXPECT_EQ(marks[0].min, 1024u);  // takes the whole share
  EXPECT_EQ(marks[1].min, 64u);
  EXPECT_EQ(marks[1].low, 64u + 65);
}

TEST(ComputeWatermarksTest, AreOrderedAndNeverOverflow) {
  for (uint64_t managed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (uint32_t scale : {1u, 3000u}) {
      const Watermarks marks = Only(managed, 262144, scale);
      EXPECT_LE(marks.min, marks.low);
      EXPECT_LE(marks.low, marks.high);
      EXPECT_LE(marks.high, marks.promo);
    }
  }
  EXPECT_EQ(Only(0, 0), Watermarks{});
}

}  // namespace
}  // namespace memtuned
