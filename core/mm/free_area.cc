// SPDX-License-Identifier: Apache-2.0
#include "core/mm/free_area.h"

#include <bit>

namespace memtuned {
namespace {

uint64_t Bit(uint32_t index) { return 1ull << (index & 63); }

uint32_t LowestBit(uint64_t word) {
  return static_cast<uint32_t>(std::countr_zero(word));
}
uint32_t HighestBit(uint64_t word) {
  return 63 - static_cast<uint32_t>(std::countl_zero(word));
}

// ZoneIntent::bit: the bit that is being set or cleared, and the zone's count
// of its type and order before: one word, so that it is stored at once.
//   valid 1 | set 1 | type 1 | order 4 | page in the section 15 | unused 10 |
//   count 32
struct BitNote {
  bool set;
  PageType type;
  int order;
  uint32_t page;  // in its section
  uint32_t count;

  uint64_t Encode() const {
    return 1 | uint64_t{set} << 1 | static_cast<uint64_t>(type) << 2 |
           static_cast<uint64_t>(order) << 3 | uint64_t{page} << 7 |
           uint64_t{count} << 32;
  }
  static bool Valid(uint64_t note) {
    return (note & 1) != 0 && (note >> 3 & 15) < kNumOrders;
  }
  static BitNote Decode(uint64_t note) {
    return {(note & 2) != 0, static_cast<PageType>(note >> 2 & 1),
            static_cast<int>(note >> 3 & 15),
            static_cast<uint32_t>(note >> 7) & (kPagesPerSection - 1),
            static_cast<uint32_t>(note >> 32)};
  }
};

}  // namespace

void SectionMap::Put(uint32_t section, bool set) {
  Shared64& word = words_[section / 64];
  const uint64_t old = LoadRelaxed(word);
  const uint64_t now = set ? old | Bit(section) : old & ~Bit(section);
  if (now != old) Store(word, now);
  Shared64& top = tops_[section / 4096];
  const uint64_t old_top = LoadRelaxed(top);
  const uint64_t bit = Bit(section / 64);
  const uint64_t new_top = now != 0 ? old_top | bit : old_top & ~bit;
  if (new_top != old_top) Store(top, new_top);
}

uint32_t SectionMap::First() const {
  const uint32_t nr_tops = (nr_words_ + 63) / 64;
  for (uint32_t i = 0; i < nr_tops; ++i) {
    const uint64_t top = LoadRelaxed(tops_[i]);
    if (top == 0) continue;
    const uint32_t word = i * 64 + LowestBit(top);
    const uint64_t bits = word < nr_words_ ? LoadRelaxed(words_[word]) : 0;
    return bits != 0 ? word * 64 + LowestBit(bits) : kNil;
  }
  return kNil;
}

uint32_t SectionMap::Last() const {
  const uint32_t nr_tops = (nr_words_ + 63) / 64;
  for (uint32_t i = nr_tops; i-- > 0;) {
    const uint64_t top = LoadRelaxed(tops_[i]);
    if (top == 0) continue;
    const uint32_t word = i * 64 + HighestBit(top);
    const uint64_t bits = word < nr_words_ ? LoadRelaxed(words_[word]) : 0;
    return bits != 0 ? word * 64 + HighestBit(bits) : kNil;
  }
  return kNil;
}

SectionMap FreeAreas::MapAt(int map) const {
  const uint32_t stride = SectionMap::WordsWithTops(info_->map_words);
  return SectionMap(
      mapping_->section_maps + info_->map_start + uint64_t{stride} * map,
      info_->map_words);
}

void FreeAreas::NoteBit(PageType type, int order, Pfn pfn, bool set) {
#ifdef MEMTUNED_NO_RECOVERY  // only a measurement of what it costs
  return;
#endif
  const BitNote note{set, type, order, pfn.value & (kPagesPerSection - 1),
                     static_cast<uint32_t>(Count(type, order))};
  Store(zone_->intent.bit, note.Encode());
}

void FreeAreas::Set(PageType type, int order, Pfn pfn) {
  const uint32_t section = pfn.value >> kSectionShift;
  SectionFreeAreas& areas = mapping_->free_areas[section];
  const uint32_t index = (pfn.value & (kPagesPerSection - 1)) >> order;
  const auto t = static_cast<size_t>(type);
  const auto o = static_cast<size_t>(order);
  const auto w = static_cast<size_t>(SectionFreeAreas::kStart[o]) + index / 64;
  Shared64& word = areas.bits[t][w];
  const uint64_t old = LoadRelaxed(word);
  NoteBit(type, order, pfn, true);
  Store(word, old | Bit(index));
  Store(zone_->free_blocks[t][o], LoadRelaxed(zone_->free_blocks[t][o]) + 1);
  if (old != 0) return;
  const auto s =
      static_cast<size_t>(SectionFreeAreas::kSummaryStart[o]) + index / 4096;
  Shared64& summary = areas.summary[t][s];
  const uint64_t old_summary = LoadRelaxed(summary);
  Store(summary, old_summary | Bit(index / 64));
  if (old_summary == 0) MapOf(type, order).Set(section - info_->first_section);
}

void FreeAreas::Clear(PageType type, int order, Pfn pfn) {
  const uint32_t section = pfn.value >> kSectionShift;
  SectionFreeAreas& areas = mapping_->free_areas[section];
  const uint32_t index = (pfn.value & (kPagesPerSection - 1)) >> order;
  const auto t = static_cast<size_t>(type);
  const auto o = static_cast<size_t>(order);
  const auto w = static_cast<size_t>(SectionFreeAreas::kStart[o]) + index / 64;
  Shared64& word = areas.bits[t][w];
  const uint64_t now = LoadRelaxed(word) & ~Bit(index);
  NoteBit(type, order, pfn, false);
  Store(word, now);
  Store(zone_->free_blocks[t][o], LoadRelaxed(zone_->free_blocks[t][o]) - 1);
  if (now != 0) return;
  const auto start = static_cast<size_t>(SectionFreeAreas::kSummaryStart[o]);
  Shared64& summary = areas.summary[t][start + index / 4096];
  const uint64_t now_summary = LoadRelaxed(summary) & ~Bit(index / 64);
  Store(summary, now_summary);
  if (now_summary != 0) return;
  const auto end = static_cast<size_t>(SectionFreeAreas::kSummaryStart[o + 1]);
  for (size_t s = start; s < end; ++s) {
    if (LoadRelaxed(areas.summary[t][s]) != 0) return;
  }
  MapOf(type, order).Clear(section - info_->first_section);
}

void FreeAreas::Repair(uint32_t section) {
  const uint64_t noted = LoadRelaxed(zone_->intent.bit);
  if (BitNote::Valid(noted)) {
    const BitNote note = BitNote::Decode(noted);
    const Pfn pfn{(section << kSectionShift) + note.page};
    const bool is_set = Test(note.type, note.order, pfn);
    uint64_t count = note.count;
    if (note.set && is_set) ++count;
    if (!note.set && !is_set) --count;
    Store(zone_->free_blocks[static_cast<size_t>(note.type)]
                            [static_cast<size_t>(note.order)],
          count);
  }
  for (int order = 0; order < kNumOrders; ++order) {
    RepairSummary(section, PageType::kOrdinary, order);
    RepairSummary(section, PageType::kPurgeable, order);
  }
}

void FreeAreas::RepairSummary(uint32_t section, PageType type, int order) {
  SectionFreeAreas& areas = mapping_->free_areas[section];
  const auto t = static_cast<size_t>(type);
  const auto o = static_cast<size_t>(order);
  const int start = SectionFreeAreas::kStart[o];
  const int words = SectionFreeAreas::kStart[o + 1] - start;
  bool any = false;
  for (int first = 0; first < words; first += 64) {
    uint64_t bits = 0;
    for (int w = first; w < words && w < first + 64; ++w) {
      if (LoadRelaxed(areas.bits[t][static_cast<size_t>(start + w)]) != 0) {
        bits |= Bit(static_cast<uint32_t>(w));
      }
    }
    Shared64& summary = areas.summary[t][static_cast<size_t>(
        SectionFreeAreas::kSummaryStart[o] + first / 64)];
    if (LoadRelaxed(summary) != bits) Store(summary, bits);
    any |= bits != 0;
  }
  MapOf(type, order).Put(section - info_->first_section, any);
}

bool FreeAreas::Test(PageType type, int order, Pfn pfn) const {
  const SectionFreeAreas& areas =
      mapping_->free_areas[pfn.value >> kSectionShift];
  const uint32_t index = (pfn.value & (kPagesPerSection - 1)) >> order;
  const auto w = static_cast<size_t>(
                     SectionFreeAreas::kStart[static_cast<size_t>(order)]) +
                 index / 64;
  return (LoadRelaxed(areas.bits[static_cast<size_t>(type)][w]) & Bit(index)) !=
         0;
}

Pfn FreeAreas::Find(PageType type, int order) const {
  const bool lowest = type == PageType::kOrdinary;
  const SectionMap map = MapOf(type, order);
  const uint32_t relative = lowest ? map.First() : map.Last();
  if (relative >= info_->nr_sections) return Pfn{kNil};
  const uint32_t section = info_->first_section + relative;
  const SectionFreeAreas& areas = mapping_->free_areas[section];
  const auto t = static_cast<size_t>(type);
  const auto o = static_cast<size_t>(order);
  const int start = SectionFreeAreas::kSummaryStart[o];
  const int end = SectionFreeAreas::kSummaryStart[o + 1];
  for (int i = 0; i < end - start; ++i) {
    const int s = lowest ? i : end - start - 1 - i;
    const uint64_t summary =
        LoadRelaxed(areas.summary[t][static_cast<size_t>(start + s)]);
    if (summary == 0) continue;
    const uint32_t w = static_cast<uint32_t>(s) * 64 +
                       (lowest ? LowestBit(summary) : HighestBit(summary));
    if (static_cast<int>(w) >=
        SectionFreeAreas::kStart[o + 1] - SectionFreeAreas::kStart[o]) {
      return Pfn{kNil};
    }
    const uint64_t word = LoadRelaxed(
        areas.bits[t][static_cast<size_t>(SectionFreeAreas::kStart[o]) + w]);
    if (word == 0) return Pfn{kNil};
    const uint32_t bit = lowest ? LowestBit(word) : HighestBit(word);
    return Pfn{(section << kSectionShift) + ((w * 64 + bit) << order)};
  }
  return Pfn{kNil};
}

}  // namespace memtuned
