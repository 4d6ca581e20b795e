// SPDX-License-Identifier: Apache-2.0
// Sections: the 128 MiB units in which a pool's memory comes into being. An
// untouched section is one entry of the section table; its part of the memmap
// and of the free areas is first written when a block is carved from it.
// Floor 1.
#ifndef MEMTUNED_CORE_MM_SECTION_H_
#define MEMTUNED_CORE_MM_SECTION_H_

#include <array>
#include <cstdint>

#include "core/base/pfn.h"
#include "core/base/shm.h"

namespace memtuned {

enum class SectionState : uint32_t {
  kOffline = 0,     // not yet initialised: not managed
  kPopulating = 1,  // its frames are being reserved by somebody
  kPristine = 2,    // managed, wholly free, memmap never written
  kCarved = 3,      // managed, described by the memmap
};

// One entry of the section table.
struct Section {
  Shared32 state;  // SectionState; written under the zone lock
  Shared32 zone;   // constant after creation
  // Pages of the section that exist: kPagesPerSection but for the last
  // section of a zone. Constant after creation.
  Shared32 pages;
  Shared32 reserved;
  // Type of each 2 MiB page block, one bit: 1 is purgeable. Under the zone
  // lock.
  Shared64 block_types;
};
static_assert(sizeof(Section) == 24);

// Free blocks of one section: a bitmap a type and order with a summary over
// its words. A set bit is a free head of that order; the memmap's word is the
// truth and the bit heals against it. Found lowest address first for ordinary
// pages, highest first for purgeable ones, so that the two stay apart.
struct SectionFreeAreas {
  // Words of order o start at kStart[o]: 512, 256, ... 1 words.
  static constexpr int kWords = 1024;
  static constexpr int kSummaryWords = 22;
  static constexpr int kAreas =
      static_cast<int>(kPagesPerSection >> kMaxOrder);  // 32

  std::array<std::array<Shared64, kWords>, kNumPageTypes> bits;
  std::array<std::array<Shared64, kSummaryWords>, kNumPageTypes> summary;
  // Free pages of each area of 1,024 pages, what a takeover of the zone lock
  // recomputes.
  std::array<Shared32, kAreas> area_free;

  // Where an order's words, and their summary, start; one more than orders.
  static constexpr std::array<int, kNumOrders + 1> kStart = {
      0, 512, 768, 896, 960, 992, 1008, 1016, 1020, 1022, 1023, 1024};
  static constexpr std::array<int, kNumOrders + 1> kSummaryStart = {
      0, 8, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22};
};
static_assert(SectionFreeAreas::kStart[kNumOrders] == SectionFreeAreas::kWords);
static_assert(sizeof(SectionFreeAreas) == 2 * 8 * (1024 + 22) + 32 * 4);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_SECTION_H_
