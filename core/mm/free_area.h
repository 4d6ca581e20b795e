// SPDX-License-Identifier: Apache-2.0
// The free blocks of one zone: bitmaps in each section, and for each type and
// order a map of the sections that have any. Only an index of the memmap.
// Floor 1; every call needs the zone lock.
#ifndef MEMTUNED_CORE_MM_FREE_AREA_H_
#define MEMTUNED_CORE_MM_FREE_AREA_H_

#include <cstdint>

#include "core/mm/mapping.h"

namespace memtuned {

// A bitmap over a zone's sections with one summary level.
class SectionMap {
 public:
  SectionMap(Shared64* words, uint32_t nr_words)
      : words_(words), tops_(words + nr_words), nr_words_(nr_words) {}

  void Set(uint32_t section) { Put(section, true); }
  void Clear(uint32_t section) { Put(section, false); }
  // Sets or clears; done twice it does no harm.
  void Put(uint32_t section, bool set);
  // Returns: lowest, or highest, set section; kNil when there is none.
  uint32_t First() const;
  uint32_t Last() const;

  static uint32_t Words(uint32_t nr_sections) {
    return (nr_sections + 63) / 64;
  }
  // Words with the summary.
  static uint32_t WordsWithTops(uint32_t nr_words) {
    return nr_words + (nr_words + 63) / 64;
  }

 private:
  Shared64* words_;
  Shared64* tops_;
  uint32_t nr_words_;
};

inline constexpr int kMapsPerZone = kNumPageTypes * kNumOrders + 1;

// Thread safety: caller holds the zone's lock.
// Death: Set and Clear leave a note of their bit in the zone's intent, and of
// the count before; Repair ends whichever of them was under way.
// REQUIRES, of Set and Clear: the zone's intent names an area of the section,
// or the section.
class FreeAreas {
 public:
  FreeAreas(const Mapping& mapping, ZoneShared& zone)
      : mapping_(&mapping),
        info_(&mapping.zone_info[&zone - mapping.zones]),
        zone_(&zone) {}

  // A head of `order` became, or stopped being, free on the list of `type`.
  void Set(PageType type, int order, Pfn pfn);
  void Clear(PageType type, int order, Pfn pfn);
  bool Test(PageType type, int order, Pfn pfn) const;
  // Returns: the lowest free head for ordinary pages, the highest for
  // purgeable ones; kNil when the list is empty. Cost: O(words of a section).
  Pfn Find(PageType type, int order) const;

  uint64_t Count(PageType type, int order) const {
    return LoadRelaxed(zone_->free_blocks[static_cast<size_t>(type)]
                                         [static_cast<size_t>(order)]);
  }

  // Counts the noted bit as it is, and puts right what is derived from a
  // section's bits: summaries, and its place in the section maps.
  void Repair(uint32_t section);

  // Sections wholly free whose memmap was never written.
  SectionMap Pristine() const { return MapAt(kMapsPerZone - 1); }

 private:
  void NoteBit(PageType type, int order, Pfn pfn, bool set);
  void RepairSummary(uint32_t section, PageType type, int order);
  SectionMap MapAt(int map) const;
  SectionMap MapOf(PageType type, int order) const {
    return MapAt(static_cast<int>(type) * kNumOrders + order);
  }

  const Mapping* mapping_;
  const ZoneInfo* info_;
  ZoneShared* zone_;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_FREE_AREA_H_
