// SPDX-License-Identifier: Apache-2.0
// Watermarks of zones: the kernel's formulas, pure. A zone's "low" here is
// always its watermark; "high" alone means a pageset's limit everywhere else.
// Source: the kernel's documented behaviour (core/README.md, "Watermarks").
// Floor 1.
#ifndef MEMTUNED_CORE_MM_WATERMARK_H_
#define MEMTUNED_CORE_MM_WATERMARK_H_

#include <cstdint>
#include <span>
#include <vector>

namespace memtuned {

// Pages. min <= low <= high <= promo.
struct Watermarks {
  uint64_t min = 0, low = 0, high = 0, promo = 0;
  bool operator==(const Watermarks&) const = default;
};

// isqrt(16 x KiB), 128 .. 262144.
uint64_t DefaultMinFreeKbytes(uint64_t lowmem_kbytes);

struct WatermarkZone {
  uint64_t managed_pages = 0;
  bool movable = false;  // takes no share of min_free_kbytes
};

// Watermarks of all zones of a subject.
//   scale_factor: 1..3000, in 1/10000 of a zone.
std::vector<Watermarks> ComputeWatermarks(std::span<const WatermarkZone> zones,
                                          uint64_t min_free_kbytes,
                                          uint32_t scale_factor,
                                          uint64_t page_size_bytes);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_WATERMARK_H_
