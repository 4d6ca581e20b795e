// SPDX-License-Identifier: Apache-2.0
// The memmap and the free areas; chunks are in zone_checker_chunks.cc.
#include "tests/support/zone_checker.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/mm/free_area.h"
#include "core/slot_table.h"

namespace memtuned {
namespace {

const char* KindName(PageKind kind) {
  constexpr const char* kNames[] = {"untouched", "free",    "cached",
                                    "allocated", "offered", "purgeable",
                                    "taking",    "offline"};
  return static_cast<size_t>(kind) < 8 ? kNames[static_cast<size_t>(kind)]
                                       : "unknown";
}

std::string Describe(uint32_t pfn, PageWord word) {
  return absl::StrCat("page ", pfn, " (", KindName(word.kind()), ", order ",
                      word.order(), ", ref ", word.ref(), ")");
}

}  // namespace

ZoneChecker::ZoneChecker(const Segment& segment)
    : segment_(segment), m_(segment.mapping()) {}

void ZoneChecker::Fail(std::string what) {
  if (problem_.empty()) problem_ = std::move(what);
}

std::string ZoneChecker::Check() {
  problem_.clear();
  pages_ = PoolPages{};
  visited_.assign(m_.nr_chunks, false);
  heads_of_.assign(m_.nr_chunks, 0);
  items_of_.assign(m_.nr_chunks, 0);
  CheckLocks();
  for (uint32_t z = 0; z < m_.nr_zones && !failed(); ++z) {
    CheckZone(m_.zones[z]);
  }
  for (uint32_t z = 0; z < m_.nr_zones && !failed(); ++z) {
    const ZoneShared& zone = m_.zones[z];
    for (uint32_t cpu = 0; cpu < m_.nr_cpus && !failed(); ++cpu) {
      if ((LoadRelaxed(zone.used_cpus[cpu / 64]) >> (cpu % 64) & 1) != 0) {
        CheckPageset(zone, cpu);
      }
    }
    if (!failed()) CheckDepot(zone);
  }
  if (!failed()) CheckEmpties();
  if (!failed()) CheckLostChunks();
  return problem_;
}

void ZoneChecker::CheckLocks() {
  const auto free_lock = [&](uint32_t holder, const std::string& what) {
    if (holder != 0) Fail(absl::StrCat(what, " is held by ", holder));
  };
  free_lock(segment_.header().tuning_lock.HolderNow(), "the tuning lock");
  for (int i = 0; i < kNumEmptyStacks; ++i) {
    free_lock(m_.empty_chunks[i].lock.HolderNow(),
              absl::StrCat("the lock of empty chunks ", i));
  }
  for (uint32_t z = 0; z < m_.nr_zones; ++z) {
    const ZoneShared& zone = m_.zones[z];
    free_lock(zone.lock.HolderNow(), absl::StrCat("the lock of zone ", z));
    for (size_t list = 0; list < zone.depot.size(); ++list) {
      free_lock(zone.depot[list].lock.HolderNow(),
                absl::StrCat("the lock of depot ", list, " of zone ", z));
    }
    if (LoadRelaxed(zone.intent.what) != kNil) {
      Fail(absl::StrCat("zone ", z, ": intent on area ",
                        LoadRelaxed(zone.intent.what), " is open"));
    }
    for (uint32_t cpu = 0; cpu < m_.nr_cpus; ++cpu) {
      if ((LoadRelaxed(zone.used_cpus[cpu / 64]) >> (cpu % 64) & 1) == 0) {
        continue;
      }
      free_lock(m_.PagesetOf(z, cpu)->guard.HolderNow(),
                absl::StrCat("the guard of zone ", z, " cpu ", cpu));
    }
  }
  for (uint32_t i = 0; i < m_.nr_threads; ++i) {
    if (LoadRelaxed(m_.threads[i].pending) != 0) {
      Fail(absl::StrCat("thread slot ", i, " has a pending chunk"));
    }
  }
}

void ZoneChecker::CheckZone(const ZoneShared& zone) {
  ZoneCounts counts;
  for (uint32_t i = 0; i < zone.nr_sections && !failed(); ++i) {
    CheckSection(zone, zone.first_section + i, counts);
  }
  if (failed()) return;
  for (int map = 0; map < kMapsPerZone; ++map) CheckMapTops(zone, map);
  const auto equal = [&](uint64_t says, uint64_t counted, const char* what) {
    if (says == counted) return;
    Fail(absl::StrCat("zone ", zone.number, ": ", what, " says ", says,
                      ", counted ", counted));
  };
  equal(LoadRelaxed(zone.free_pages), counts.free, "free_pages");
  equal(LoadRelaxed(zone.managed_pages), counts.managed, "managed_pages");
  equal(LoadRelaxed(zone.nr_pristine), counts.pristine, "nr_pristine");
  for (size_t t = 0; t < kNumPageTypes; ++t) {
    for (size_t o = 0; o < kNumOrders; ++o) {
      equal(LoadRelaxed(zone.free_blocks[t][o]), counts.blocks[t][o],
            absl::StrCat("free_blocks of type ", t, " order ", o).c_str());
    }
  }
}

void ZoneChecker::CheckSection(const ZoneShared& zone, uint32_t number,
                               ZoneCounts& counts) {
  const Section& section = m_.sections[number];
  const auto state = static_cast<SectionState>(LoadRelaxed(section.state));
  const uint32_t pages = LoadRelaxed(section.pages);
  const bool pristine = state == SectionState::kPristine;
  CheckMap(zone, kMapsPerZone - 1, number, pristine, "pristine");
  uint64_t blocks[kNumPageTypes][kNumOrders] = {};
  if (pristine) {
    counts.free += pages;
    counts.pristine += 1;
    pages_.free += pages;
  }
  if (pristine || state == SectionState::kCarved) counts.managed += pages;
  std::vector<uint64_t> area_free(SectionFreeAreas::kAreas, 0);
  if (state == SectionState::kCarved) {
    for (uint32_t at = 0; at < pages && !failed();) {
      const uint32_t pfn = (number << kSectionShift) + at;
      const PageWord word(LoadRelaxed(m_.memmap[pfn].word));
      CheckHead(zone, pfn, word);
      if (failed()) return;
      const uint32_t size = 1u << word.order();
      if (word.kind() == PageKind::kFree) {
        blocks[static_cast<size_t>(word.type())]
              [static_cast<size_t>(word.order())]++;
        area_free[at >> kMaxOrder] += size;
        counts.free += size;
        pages_.free += size;
      }
      at += size;
    }
    CheckFreeAreas(zone, number, blocks);
    for (size_t a = 0; a < area_free.size() && !failed(); ++a) {
      const uint64_t says = LoadRelaxed(m_.free_areas[number].area_free[a]);
      if (says != area_free[a]) {
        Fail(absl::StrCat("section ", number, " area ", a, ": area_free says ",
                          says, ", counted ", area_free[a]));
      }
    }
  }
  for (size_t t = 0; t < kNumPageTypes; ++t) {
    for (size_t o = 0; o < kNumOrders; ++o) {
      counts.blocks[t][o] += blocks[t][o];
      CheckMap(zone, static_cast<int>(t * kNumOrders + o), number,
               blocks[t][o] != 0, "free blocks");
    }
  }
}

void ZoneChecker::CheckHead(const ZoneShared& zone, uint32_t pfn,
                            PageWord word) {
  const int order = word.order();
  const uint32_t in_section = pfn & (kPagesPerSection - 1);
  const uint32_t pages = LoadRelaxed(m_.sections[pfn >> kSectionShift].pages);
  if (order > kMaxOrder || (pfn & ((1u << order) - 1)) != 0 ||
      in_section + (1u << order) > pages) {
    Fail(absl::StrCat(Describe(pfn, word), " is no aligned block of zone ",
                      zone.number));
    return;
  }
  const uint64_t size = uint64_t{1} << order;
  switch (word.kind()) {
    case PageKind::kFree:
      CheckFreeHead(pfn, word);
      break;
    case PageKind::kCached:
      if (word.ref() == kNoChunk || word.ref() >= m_.nr_chunks) {
        Fail(absl::StrCat(Describe(pfn, word), " names no chunk"));
        return;
      }
      ++heads_of_[word.ref()];
      pages_.cached += size;
      break;
    case PageKind::kAllocated:
    case PageKind::kOffered:
      (word.kind() == PageKind::kAllocated ? pages_.allocated
                                           : pages_.offered) += size;
      pages_.of_owner[word.ref()] += size;
      if (FindProcessSlot(segment_, word.ref()) == nullptr) {
        Fail(absl::StrCat(Describe(pfn, word), " belongs to nobody attached"));
      }
      break;
    default:
      Fail(absl::StrCat(Describe(pfn, word), " is in no place a page can be"));
      return;
  }
  CheckInside(pfn, order);
}

void ZoneChecker::CheckFreeHead(uint32_t pfn, PageWord word) {
  const Section& section = m_.sections[pfn >> kSectionShift];
  const uint32_t in_section = pfn & (kPagesPerSection - 1);
  const auto type = static_cast<PageType>(
      LoadRelaxed(section.block_types) >> (in_section >> kPageblockOrder) & 1);
  if (word.type() != type) {
    Fail(absl::StrCat(Describe(pfn, word), " has type ",
                      static_cast<int>(word.type()), ", its page block ",
                      static_cast<int>(type)));
  }
  if (word.order() == kMaxOrder) return;
  const uint32_t buddy = pfn ^ (1u << word.order());
  if ((buddy & (kPagesPerSection - 1)) + (1u << word.order()) >
      LoadRelaxed(section.pages)) {
    return;
  }
  const PageWord other(LoadRelaxed(m_.memmap[buddy].word));
  if (other.Is(PageKind::kFree, word.order()) && other.type() == type) {
    Fail(absl::StrCat(Describe(pfn, word), " was not merged with its buddy ",
                      buddy));
  }
}

void ZoneChecker::CheckInside(uint32_t pfn, int order) {
  for (uint32_t i = 1; i < (1u << order); ++i) {
    const PageWord word(LoadRelaxed(m_.memmap[pfn + i].word));
    if (word.kind() >= PageKind::kAllocated) {
      Fail(absl::StrCat(Describe(pfn + i, word), " lies inside the block at ",
                        pfn, " of order ", order));
      return;
    }
  }
}

void ZoneChecker::CheckFreeAreas(
    const ZoneShared& zone, uint32_t number,
    const uint64_t (&blocks)[kNumPageTypes][kNumOrders]) {
  const SectionFreeAreas& areas = m_.free_areas[number];
  for (size_t t = 0; t < kNumPageTypes; ++t) {
    for (size_t o = 0; o < kNumOrders && !failed(); ++o) {
      const auto start = static_cast<uint32_t>(SectionFreeAreas::kStart[o]);
      const auto end = static_cast<uint32_t>(SectionFreeAreas::kStart[o + 1]);
      uint64_t bits = 0;
      for (uint32_t w = start; w < end; ++w) {
        const uint64_t word = LoadRelaxed(areas.bits[t][w]);
        if (word != 0) bits += static_cast<uint64_t>(std::popcount(word));
        const uint32_t in_order = w - start;
        const uint64_t summary = LoadRelaxed(
            areas.summary[t][static_cast<uint32_t>(
                                 SectionFreeAreas::kSummaryStart[o]) +
                             in_order / 64]);
        if ((summary >> (in_order % 64) & 1) != (word != 0 ? 1u : 0u)) {
          Fail(absl::StrCat("section ", number, " type ", t, " order ", o,
                            ": summary of word ", in_order, " is wrong"));
        }
      }
      if (bits != blocks[t][o]) {
        Fail(absl::StrCat("section ", number, " type ", t, " order ", o, ": ",
                          bits, " bits, the memmap has ", blocks[t][o],
                          " free heads"));
      }
    }
  }
  // As many bits as heads, and each head has its bit: then none is elsewhere.
  const FreeAreas index(m_, const_cast<ZoneShared&>(zone));
  const uint32_t first = number << kSectionShift;
  const uint32_t pages = LoadRelaxed(m_.sections[number].pages);
  for (uint32_t at = 0; at < pages && !failed();) {
    const PageWord word(LoadRelaxed(m_.memmap[first + at].word));
    if (word.kind() == PageKind::kFree &&
        !index.Test(word.type(), word.order(), Pfn{first + at})) {
      Fail(absl::StrCat(Describe(first + at, word),
                        " has no bit in the free area"));
    }
    at += 1u << word.order();
  }
}

namespace {

const Shared64* MapWords(const Mapping& m, const ZoneShared& zone, int map) {
  const uint32_t stride = SectionMap::WordsWithTops(zone.map_words);
  return m.section_maps + zone.map_start +
         uint64_t{stride} * static_cast<uint64_t>(map);
}

}  // namespace

void ZoneChecker::CheckMap(const ZoneShared& zone, int map, uint32_t section,
                           bool set, const char* what) {
  const uint32_t index = section - zone.first_section;
  const uint64_t word = LoadRelaxed(MapWords(m_, zone, map)[index / 64]);
  if ((word >> (index % 64) & 1) == (set ? 1u : 0u)) return;
  Fail(absl::StrCat(
      "zone ", zone.number, " section map ", map, ": section ", section,
      set ? " is missing among those with " : " is listed among those with ",
      what));
}

void ZoneChecker::CheckMapTops(const ZoneShared& zone, int map) {
  const Shared64* words = MapWords(m_, zone, map);
  for (uint32_t w = 0; w < zone.map_words; ++w) {
    const uint64_t top = LoadRelaxed(words[zone.map_words + w / 64]);
    if ((top >> (w % 64) & 1) != (LoadRelaxed(words[w]) != 0 ? 1u : 0u)) {
      Fail(absl::StrCat("zone ", zone.number, " section map ", map,
                        ": top of word ", w, " is wrong"));
    }
  }
}

}  // namespace memtuned
