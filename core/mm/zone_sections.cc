// SPDX-License-Identifier: Apache-2.0
// Where blocks come from when a list is empty: pristine sections, and page
// blocks of the other type; and how sections get into a zone.
#include <algorithm>
#include <bit>

#include "core/mm/zone.h"

namespace memtuned {
namespace {

constexpr uint32_t kPageblockPages = 1u << kPageblockOrder;

PageType Other(PageType type) {
  return type == PageType::kOrdinary ? PageType::kPurgeable
                                     : PageType::kOrdinary;
}

PageWord WordIn(const Page& page) { return PageWord(LoadRelaxed(page.word)); }

void PutWord(Page& page, PageWord word) { Store(page.word, word.bits()); }

bool IsIn(const Section& section, SectionState state) {
  return LoadRelaxed(section.state) == static_cast<uint32_t>(state);
}

}  // namespace

uint32_t Zone::PagesOfPageblock(Pfn pfn) const {
  const uint32_t at = pfn.value & (kPagesPerSection - 1);
  return std::min(kPageblockPages,
                  mapping_->PagesOfSection(pfn.value >> kSectionShift) - at);
}

bool Zone::SourceLocked(int order, PageType type, PageType& source) {
  source = type;
  if (SmallestOrder(order, type) >= 0) return true;
  const SectionMap pristine = areas_.Pristine();
  const uint32_t section =
      type == PageType::kOrdinary ? pristine.First() : pristine.Last();
  if (section != kNil) {
    CarveLocked(info_->first_section + section, type);
    return true;
  }
  if (ClaimFromOtherLocked(order, type)) return true;
  source = Other(type);  // one block, its page block keeps its type
  return SmallestOrder(order, source) >= 0;
}

void Zone::CarveLocked(uint32_t section, PageType type) {
  OpenIntentLocked(IntentKind::kCarve, section, type);
  EndCarveLocked(section, type);
}

void Zone::EndCarveLocked(uint32_t number, PageType type) {
  Section& section = mapping_->sections[number];
  if (!IsIn(section, SectionState::kCarved)) {
    WriteFreeBlocksLocked(number, type);
    Store(section.state, static_cast<uint32_t>(SectionState::kCarved));
  }
  areas_.Pristine().Clear(number - info_->first_section);
  Store(z_->nr_pristine,
        static_cast<uint32_t>(LoadRelaxed(z_->intent.nr_pristine)) - 1);
}

void Zone::WriteFreeBlocksLocked(uint32_t number, PageType type) {
  Section& section = mapping_->sections[number];
  const uint32_t start = number << kSectionShift;
  const uint32_t pages = mapping_->PagesOfSection(number);
  Store(section.block_types,
        type == PageType::kPurgeable ? ~uint64_t{0} : uint64_t{0});
  std::array<uint32_t, SectionFreeAreas::kAreas> area_free{};
  for (uint32_t at = 0; at < pages;) {
    int order = at == 0 ? kMaxOrder : std::min(kMaxOrder, std::countr_zero(at));
    while (at + (1u << order) > pages) --order;
    const Pfn pfn{start + at};
    Page& page = mapping_->page(pfn);
    PutWord(page, WordIn(page).With(PageKind::kFree, order, 0).WithType(type));
    if (!areas_.Test(type, order, pfn)) areas_.Set(type, order, pfn);
    area_free[at >> kMaxOrder] += 1u << order;
    at += 1u << order;
  }
  for (size_t i = 0; i < area_free.size(); ++i) {
    Store(mapping_->free_areas[number].area_free[i], area_free[i]);
  }
}

bool Zone::ClaimFromOtherLocked(int order, PageType type) {
  const PageType other = Other(type);
  // The largest block first: whoever must break a page block of the other
  // type should have to do it rarely.
  for (int o = kMaxOrder; o >= order; --o) {
    if (areas_.Count(other, o) == 0) continue;
    const Pfn found = FindLocked(other, o);
    if (found.value == kNil) continue;
    const Pfn block{found.value & ~(kPageblockPages - 1)};
    if (o >= kPageblockOrder) {
      ConvertBlockLocked(block, type);
      return true;
    }
    uint32_t free_pages = 0;
    const uint32_t pages = PagesOfPageblock(block);
    for (uint32_t at = 0; at < pages;) {
      const PageWord word = WordIn(mapping_->page(Pfn{block.value + at}));
      if (word.kind() == PageKind::kFree) free_pages += 1u << word.order();
      at += 1u << word.order();
    }
    if (free_pages >= pages / 2) {
      ConvertBlockLocked(block, type);
      return SmallestOrder(order, type) >= 0;
    }
    return false;
  }
  return false;
}

void Zone::ConvertBlockLocked(Pfn block, PageType to) {
  OpenAreaLocked(block);
  const PageType from = Other(to);
  const uint32_t pages = std::max(PagesOfPageblock(block),
                                  1u << WordIn(mapping_->page(block)).order());
  Section& section = mapping_->sections[block.value >> kSectionShift];
  uint64_t types = LoadRelaxed(section.block_types);
  for (uint32_t at = 0; at < pages; at += kPageblockPages) {
    const uint32_t index =
        ((block.value + at) & (kPagesPerSection - 1)) >> kPageblockOrder;
    types = to == PageType::kPurgeable ? types | 1ull << index
                                       : types & ~(1ull << index);
  }
  Store(section.block_types, types);
  for (uint32_t at = 0; at < pages;) {
    const Pfn pfn{block.value + at};
    Page& page = mapping_->page(pfn);
    const PageWord word = WordIn(page);
    if (word.kind() == PageKind::kFree && word.type() == from &&
        mapping_->IsBlock(pfn, word.order())) {
      areas_.Clear(from, word.order(), pfn);
      PutWord(page, word.WithType(to));
      areas_.Set(to, word.order(), pfn);
    }
    at += 1u << word.order();
  }
}

void Zone::OnlineSectionLocked(uint32_t section) {
  OpenIntentLocked(IntentKind::kOnline, section);
  EndOnlineLocked(section);
}

void Zone::EndOnlineLocked(uint32_t number) {
  Section& section = mapping_->sections[number];
  const uint32_t pages = mapping_->PagesOfSection(number);
  const bool whole = pages == kPagesPerSection;
  if (whole) {
    areas_.Pristine().Set(number - info_->first_section);
    Store(z_->nr_pristine,
          static_cast<uint32_t>(LoadRelaxed(z_->intent.nr_pristine)) + 1);
  } else if (IsIn(section, SectionState::kPopulating)) {
    WriteFreeBlocksLocked(number, PageType::kOrdinary);
  }
  Store(z_->managed_pages, LoadRelaxed(z_->intent.managed_pages) + pages);
  Store(z_->free_pages, LoadRelaxed(z_->intent.free_pages) + pages);
  Store(section.state, static_cast<uint32_t>(whole ? SectionState::kPristine
                                                   : SectionState::kCarved));
}

}  // namespace memtuned
