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

}  // namespace

void SectionMap::Set(uint32_t section) {
  Shared64& word = words_[section / 64];
  const uint64_t old = LoadRelaxed(word);
  Store(word, old | Bit(section));
  if (old == 0) {
    Shared64& top = tops_[section / 4096];
    Store(top, LoadRelaxed(top) | Bit(section / 64));
  }
}

void SectionMap::Clear(uint32_t section) {
  Shared64& word = words_[section / 64];
  const uint64_t now = LoadRelaxed(word) & ~Bit(section);
  Store(word, now);
  if (now == 0) {
    Shared64& top = tops_[section / 4096];
    Store(top, LoadRelaxed(top) & ~Bit(section / 64));
  }
}

uint32_t SectionMap::First() const {
  const uint32_t nr_tops = (nr_words_ + 63) / 64;
  for (uint32_t i = 0; i < nr_tops; ++i) {
    const uint64_t top = LoadRelaxed(tops_[i]);
    if (top == 0) continue;
    const uint32_t word = i * 64 + LowestBit(top);
    return word * 64 + LowestBit(LoadRelaxed(words_[word]));
  }
  return kNil;
}

uint32_t SectionMap::Last() const {
  const uint32_t nr_tops = (nr_words_ + 63) / 64;
  for (uint32_t i = nr_tops; i-- > 0;) {
    const uint64_t top = LoadRelaxed(tops_[i]);
    if (top == 0) continue;
    const uint32_t word = i * 64 + HighestBit(top);
    return word * 64 + HighestBit(LoadRelaxed(words_[word]));
  }
  return kNil;
}

SectionMap FreeAreas::MapAt(int map) const {
  const uint32_t stride = SectionMap::WordsWithTops(zone_->map_words);
  return SectionMap(
      mapping_->section_maps + zone_->map_start + uint64_t{stride} * map,
      zone_->map_words);
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
  Store(word, old | Bit(index));
  Bump(zone_->free_blocks[t][o]);
  if (old != 0) return;
  const auto s =
      static_cast<size_t>(SectionFreeAreas::kSummaryStart[o]) + index / 4096;
  Shared64& summary = areas.summary[t][s];
  const uint64_t old_summary = LoadRelaxed(summary);
  Store(summary, old_summary | Bit(index / 64));
  if (old_summary == 0) MapOf(type, order).Set(section - zone_->first_section);
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
  Store(word, now);
  Bump(zone_->free_blocks[t][o], ~uint64_t{0});
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
  MapOf(type, order).Clear(section - zone_->first_section);
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
  if (relative == kNil) return Pfn{kNil};
  const uint32_t section = zone_->first_section + relative;
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
    const uint64_t word = LoadRelaxed(
        areas.bits[t][static_cast<size_t>(SectionFreeAreas::kStart[o]) + w]);
    const uint32_t bit = lowest ? LowestBit(word) : HighestBit(word);
    return Pfn{(section << kSectionShift) + ((w * 64 + bit) << order)};
  }
  return Pfn{kNil};
}

}  // namespace memtuned
