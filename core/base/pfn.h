// SPDX-License-Identifier: Apache-2.0
// Units as types and the sizes everything else is built on. Floor 0.
#ifndef MEMTUNED_CORE_BASE_PFN_H_
#define MEMTUNED_CORE_BASE_PFN_H_

#include <compare>
#include <cstdint>

namespace memtuned {

inline constexpr uint64_t kPageSizeBytes = 4096;
inline constexpr int kPageShift = 12;
inline constexpr int kMaxOrder = 10;  // largest block: 2^10 pages, 4 MiB
inline constexpr int kNumOrders = kMaxOrder + 1;
inline constexpr int kPageblockOrder = 9;  // page types are kept per 2 MiB
inline constexpr int kCostlyOrder = 3;     // pagesets hold orders 0..3 ...
inline constexpr int kHugeOrder = 9;       // ... and this one
// A section is the unit in which memory comes and goes: 128 MiB.
inline constexpr int kSectionShift = 15;
inline constexpr uint32_t kPagesPerSection = 1u << kSectionShift;
inline constexpr uint32_t kNil = ~0u;  // "none" in every index

// Number of a page in its pool, also of the frame behind it.
struct Pfn {
  uint32_t value = kNil;
  auto operator<=>(const Pfn&) const = default;
};

// "unmovable" in the kernel's words: ordinary pages; "reclaimable": pages
// whose owner allows them to be taken back.
enum class PageType : uint8_t { kOrdinary = 0, kPurgeable = 1 };
inline constexpr int kNumPageTypes = 2;

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_PFN_H_
