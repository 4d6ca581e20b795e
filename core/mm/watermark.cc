// SPDX-License-Identifier: Apache-2.0
#include "core/mm/watermark.h"

#include <algorithm>
#include <cmath>

namespace memtuned {
namespace {

uint64_t IntegerSquareRoot(uint64_t value) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(value)));
  while (root > 0 && root > value / root) --root;
  while ((root + 1) <= value / (root + 1)) ++root;
  return root;
}

// a * b / c without losing the high bits.
uint64_t MulDiv(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b / c);
}

}  // namespace

uint64_t DefaultMinFreeKbytes(uint64_t lowmem_kbytes) {
  return std::clamp<uint64_t>(IntegerSquareRoot(lowmem_kbytes * 16), 128,
                              262144);
}

std::vector<Watermarks> ComputeWatermarks(std::span<const WatermarkZone> zones,
                                          uint64_t min_free_kbytes,
                                          uint32_t scale_factor,
                                          uint64_t page_size_bytes) {
  const uint64_t pages_min = min_free_kbytes * 1024 / page_size_bytes;
  uint64_t total = 0;
  for (const WatermarkZone& zone : zones) {
    if (!zone.movable) total += zone.managed_pages;
  }
  std::vector<Watermarks> result;
  result.reserve(zones.size());
  for (const WatermarkZone& zone : zones) {
    const uint64_t managed = zone.managed_pages;
    const uint64_t share =
        zone.movable || total == 0 ? 0 : MulDiv(pages_min, managed, total);
    const uint64_t step =
        std::max(share / 4, MulDiv(managed, scale_factor, 10000));
    Watermarks marks;
    marks.min =
        zone.movable ? std::clamp<uint64_t>(managed / 1024, 32, 128) : share;
    marks.low = marks.min + step;
    marks.high = marks.low + step;
    marks.promo = marks.high + step;
    result.push_back(marks);
  }
  return result;
}

}  // namespace memtuned
