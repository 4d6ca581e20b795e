// SPDX-License-Identifier: Apache-2.0
#include "core/mm/zone.h"

#include <algorithm>
#include <bit>

namespace memtuned {
namespace {

constexpr uint32_t kAreaPages = 1u << kMaxOrder;
constexpr uint32_t kPageblockPages = 1u << kPageblockOrder;

PageType Other(PageType type) {
  return type == PageType::kOrdinary ? PageType::kPurgeable
                                     : PageType::kOrdinary;
}

PageWord WordOf(const Page& page) { return PageWord(LoadRelaxed(page.word)); }

void SetWord(Page& page, PageWord word) { Store(page.word, word.bits()); }

}  // namespace

const char* ZoneKindName(ZoneKind kind) {
  return kind == ZoneKind::kNormal ? "Normal" : "Movable";
}

void Zone::Lock(ThreadOwner owner) {
  LockCounted(z_->lock, z_->lock_counters, owner);
}

void Zone::Unlock(uint64_t pages) {
  if (pages > LoadRelaxed(z_->hold_pages_max)) {
    Store(z_->hold_pages_max, pages);
  }
  CloseIntentLocked();
  z_->lock.Unlock();
}

void Zone::OpenIntentLocked(Pfn pfn) {
  const uint32_t area = pfn.value >> kMaxOrder;
  if (LoadRelaxed(z_->intent.area) == area) return;
  const Shared32& area_free = mapping_->free_areas[pfn.value >> kSectionShift]
                                  .area_free[area % SectionFreeAreas::kAreas];
  Store(z_->intent.area, kNil);
  Store(z_->intent.area_free, LoadRelaxed(area_free));
  Store(z_->intent.zone_free, LoadRelaxed(z_->free_pages));
  Store(z_->intent.area, area);
}

void Zone::CloseIntentLocked() { Store(z_->intent.area, kNil); }

void Zone::AddFreeLocked(Pfn pfn, int64_t pages) {
  Shared32& area_free =
      mapping_->free_areas[pfn.value >> kSectionShift]
          .area_free[(pfn.value >> kMaxOrder) % SectionFreeAreas::kAreas];
  Store(area_free, LoadRelaxed(area_free) + static_cast<uint32_t>(pages));
  Store(z_->free_pages,
        LoadRelaxed(z_->free_pages) + static_cast<uint64_t>(pages));
}

PageType Zone::BlockType(Pfn pfn) const {
  const uint32_t block =
      (pfn.value & (kPagesPerSection - 1)) >> kPageblockOrder;
  const Section& section = mapping_->sections[pfn.value >> kSectionShift];
  return static_cast<PageType>(LoadRelaxed(section.block_types) >> block & 1);
}

uint32_t Zone::PagesOfPageblock(Pfn pfn) const {
  const Section& section = mapping_->sections[pfn.value >> kSectionShift];
  const uint32_t at = pfn.value & (kPagesPerSection - 1);
  return std::min(kPageblockPages, LoadRelaxed(section.pages) - at);
}

int Zone::SmallestOrder(int order, PageType type) const {
  for (int o = order; o < kNumOrders; ++o) {
    if (areas_.Count(type, o) != 0) return o;
  }
  return -1;
}

Pfn Zone::DetachLocked(PageType type, int from_order, int to_order) {
  const Pfn pfn = areas_.Find(type, from_order);
  CHECK(pfn.value < mapping_->nr_pages);
  Page& head = mapping_->page(pfn);
  const PageWord word = WordOf(head);
  CHECK_WITH(word.Is(PageKind::kFree, from_order), pfn.value, word.bits());
  OpenIntentLocked(pfn);
  areas_.Clear(type, from_order, pfn);
  for (int o = from_order; o-- > to_order;) {
    const Pfn rest{pfn.value + (1u << o)};
    Page& inner = mapping_->page(rest);
    // The inner head first: until the outer word shrinks it is not looked at.
    SetWord(inner, WordOf(inner).With(PageKind::kFree, o, 0).WithType(type));
    areas_.Set(type, o, rest);
    SetWord(head, word.With(PageKind::kFree, o, 0));
  }
  return pfn;
}

uint32_t Zone::FillChunkLocked(uint32_t chunk_number, int order, PageType type,
                               uint32_t want) {
  Chunk& chunk = mapping_->chunks[chunk_number];
  const uint32_t start = LoadRelaxed(chunk.count);
  want = std::min(want, kChunkBlocks - start);
  uint32_t n = 0;
  while (n < want) {
    PageType source;
    if (!SourceLocked(order, type, source)) break;
    const int found = SmallestOrder(order, source);
    const int most = order + static_cast<int>(std::bit_width(want - n)) - 1;
    const int taken = std::min(found, most);
    const Pfn block = DetachLocked(source, found, taken);
    const uint32_t m = 1u << (taken - order);
    for (uint32_t i = 0; i < m; ++i) {
      Store(chunk.items[start + n + i], block.value + ((m - 1 - i) << order));
    }
    // The array covers the blocks before their words say so; the head's word
    // goes last and commits them all.
    Store(chunk.count, start + n + m);
    for (uint32_t i = m; i-- > 0;) {
      Page& page = mapping_->page(Pfn{block.value + (i << order)});
      SetWord(page, WordOf(page)
                        .With(PageKind::kCached, order, chunk_number)
                        .WithType(source));
    }
    AddFreeLocked(block, -static_cast<int64_t>(m << order));
    n += m;
  }
  for (uint32_t i = 0; i < n; ++i) env::Charge(env::Cost::kZoneTake);
  return n;
}

void Zone::FreeFromChunkLocked(uint32_t chunk_number, int order,
                               uint32_t blocks) {
  Chunk& chunk = mapping_->chunks[chunk_number];
  for (uint32_t count = LoadRelaxed(chunk.count); blocks > 0; --blocks) {
    CHECK(count > 0);
    --count;
    const Pfn pfn{LoadRelaxed(chunk.items[count])};
    CHECK(pfn.value < mapping_->nr_pages);
    GiveBlockLocked(pfn, order);
    Store(chunk.count, count);
  }
}

Pfn Zone::TakeBlockLocked(int order, PageType type, ProcessOwner owner) {
  PageType source;
  if (!SourceLocked(order, type, source)) return Pfn{kNil};
  const Pfn pfn = DetachLocked(source, SmallestOrder(order, source), order);
  Page& page = mapping_->page(pfn);
  SetWord(page, WordOf(page).With(PageKind::kAllocated, order, owner));
  AddFreeLocked(pfn, -(int64_t{1} << order));
  env::Charge(env::Cost::kZoneTake);
  return pfn;
}

void Zone::GiveBlockLocked(Pfn pfn, int order) {
  OpenIntentLocked(pfn);
  const PageType type = BlockType(pfn);
  Page& page = mapping_->page(pfn);
  // Commits: free, next generation.
  SetWord(page, WordOf(page)
                    .NextGeneration()
                    .With(PageKind::kFree, order, 0)
                    .WithType(type));
  Pfn head = pfn;
  int merged = order;
  while (merged < kMaxOrder) {
    const Pfn buddy{head.value ^ (1u << merged)};
    if (buddy.value >= mapping_->nr_pages) break;
    const PageWord word = WordOf(mapping_->page(buddy));
    if (!word.Is(PageKind::kFree, merged) || word.type() != type) break;
    areas_.Clear(type, merged, buddy);
    head.value &= ~(1u << merged);
    ++merged;
  }
  if (merged != order) {
    // All levels at once: one store of the outermost head.
    Page& outer = mapping_->page(head);
    SetWord(outer, WordOf(outer).With(PageKind::kFree, merged, 0));
  }
  areas_.Set(type, merged, head);
  AddFreeLocked(pfn, int64_t{1} << order);
  env::Charge(env::Cost::kZoneGive);
}

bool Zone::SourceLocked(int order, PageType type, PageType& source) {
  source = type;
  if (SmallestOrder(order, type) >= 0) return true;
  const SectionMap pristine = areas_.Pristine();
  const uint32_t section =
      type == PageType::kOrdinary ? pristine.First() : pristine.Last();
  if (section != kNil) {
    CarveLocked(z_->first_section + section, type);
    return true;
  }
  if (ClaimFromOtherLocked(order, type)) return true;
  source = Other(type);  // one block, its page block keeps its type
  return SmallestOrder(order, source) >= 0;
}

void Zone::CarveLocked(uint32_t section_number, PageType type) {
  Section& section = mapping_->sections[section_number];
  const bool was_pristine = LoadRelaxed(section.state) ==
                            static_cast<uint32_t>(SectionState::kPristine);
  const uint32_t start = section_number << kSectionShift;
  const uint32_t pages = LoadRelaxed(section.pages);
  Store(section.block_types,
        type == PageType::kPurgeable ? ~uint64_t{0} : uint64_t{0});
  for (uint32_t at = 0; at < pages;) {
    int order = at == 0 ? kMaxOrder : std::min(kMaxOrder, std::countr_zero(at));
    while (at + (1u << order) > pages) --order;
    const Pfn pfn{start + at};
    Page& page = mapping_->page(pfn);
    SetWord(page, WordOf(page).With(PageKind::kFree, order, 0).WithType(type));
    areas_.Set(type, order, pfn);
    Shared32& area_free =
        mapping_->free_areas[section_number]
            .area_free[(at >> kMaxOrder) % SectionFreeAreas::kAreas];
    Store(area_free, LoadRelaxed(area_free) + (1u << order));
    at += 1u << order;
  }
  Store(section.state, static_cast<uint32_t>(SectionState::kCarved));
  if (was_pristine) {
    areas_.Pristine().Clear(section_number - z_->first_section);
    Bump(z_->nr_pristine, ~0u);
  }
}

bool Zone::ClaimFromOtherLocked(int order, PageType type) {
  const PageType other = Other(type);
  // The largest block first: whoever must break a page block of the other
  // type should have to do it rarely.
  for (int o = kMaxOrder; o >= order; --o) {
    if (areas_.Count(other, o) == 0) continue;
    const Pfn found = areas_.Find(other, o);
    const Pfn block{found.value & ~(kPageblockPages - 1)};
    if (o >= kPageblockOrder) {
      ConvertBlockLocked(block, type);
      return true;
    }
    uint32_t free_pages = 0;
    const uint32_t pages = PagesOfPageblock(block);
    for (uint32_t at = 0; at < pages;) {
      const PageWord word = WordOf(mapping_->page(Pfn{block.value + at}));
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
  OpenIntentLocked(block);
  const PageType from = Other(to);
  const uint32_t pages = std::max(PagesOfPageblock(block),
                                  1u << WordOf(mapping_->page(block)).order());
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
    const PageWord word = WordOf(page);
    if (word.kind() == PageKind::kFree && word.type() == from) {
      areas_.Clear(from, word.order(), pfn);
      SetWord(page, word.WithType(to));
      areas_.Set(to, word.order(), pfn);
    }
    at += 1u << word.order();
  }
}

void Zone::OnlineSectionLocked(uint32_t section_number) {
  Section& section = mapping_->sections[section_number];
  const uint32_t pages = LoadRelaxed(section.pages);
  if (pages == kPagesPerSection) {
    Store(section.state, static_cast<uint32_t>(SectionState::kPristine));
    areas_.Pristine().Set(section_number - z_->first_section);
    Bump(z_->nr_pristine);
  } else {
    CarveLocked(section_number, PageType::kOrdinary);
  }
  Store(z_->managed_pages, LoadRelaxed(z_->managed_pages) + pages);
  Store(z_->free_pages, LoadRelaxed(z_->free_pages) + pages);
}

bool Zone::Above(int order, Mark mark) const {
  const uint64_t pages = 1ull << order;
  const uint64_t free_pages = FreePages();
  if (free_pages < pages || free_pages - (pages - 1) <= mark.pages) {
    return false;
  }
  if (order == 0 || mark.last_attempt || LoadRelaxed(z_->nr_pristine) != 0) {
    return true;
  }
  return SmallestOrder(order, PageType::kOrdinary) >= 0 ||
         SmallestOrder(order, PageType::kPurgeable) >= 0;
}

uint64_t Zone::FreeBlocks(int order) const {
  uint64_t blocks = areas_.Count(PageType::kOrdinary, order) +
                    areas_.Count(PageType::kPurgeable, order);
  if (order == kMaxOrder) {
    blocks += uint64_t{LoadRelaxed(z_->nr_pristine)} *
              (kPagesPerSection / kAreaPages);
  }
  return blocks;
}

int Zone::LargestFreeOrder() const {
  for (int order = kMaxOrder; order >= 0; --order) {
    if (FreeBlocks(order) != 0) return order;
  }
  return -1;
}

void Zone::SetFlag(uint32_t flag) {
  z_->control.fetch_or(flag, std::memory_order_relaxed);
}

void Zone::ClearFlag(uint32_t flag) {
  z_->control.fetch_and(~flag, std::memory_order_relaxed);
}

void Zone::PublishLimits(const PagesetLimits& limits) {
  Store(z_->policy, static_cast<uint32_t>(limits.policy));
  Store(z_->batch, limits.batch);
  Store(z_->high_min, limits.high_min);
  Store(z_->high_max, limits.high_max);
  Store(z_->free_high_threshold, limits.free_high_threshold);
  Store(z_->scale_max, limits.scale_max);
  Store(z_->chunked_flush, limits.chunked_flush ? 1u : 0u);
  // Pairs with the acquire in Pageset::SyncLimits. Readers tolerate any mix
  // of old and new: each value is valid by itself.
  z_->control.fetch_add(kZoneSequenceStep, std::memory_order_release);
}

void Zone::PublishWatermarks(const Watermarks& marks) {
  Store(z_->watermark_min, marks.min);
  Store(z_->watermark_low, marks.low);
  Store(z_->watermark_high, marks.high);
  Store(z_->watermark_promo, marks.promo);
}

PagesetLimits Zone::LimitsNow() const {
  PagesetLimits limits;
  limits.policy = static_cast<PagesetPolicy>(
      std::min<uint32_t>(LoadRelaxed(z_->policy), kNumPolicies - 1));
  limits.batch = std::max(1u, LoadRelaxed(z_->batch));
  limits.high_min = LoadRelaxed(z_->high_min);
  limits.high_max = std::max(limits.high_min, LoadRelaxed(z_->high_max));
  limits.free_high_threshold = LoadRelaxed(z_->free_high_threshold);
  limits.scale_max = std::min(LoadRelaxed(z_->scale_max), 6u);
  limits.chunked_flush = LoadRelaxed(z_->chunked_flush) != 0;
  return limits;
}

Watermarks Zone::WatermarksNow() const {
  return Watermarks{
      LoadRelaxed(z_->watermark_min), LoadRelaxed(z_->watermark_low),
      LoadRelaxed(z_->watermark_high), LoadRelaxed(z_->watermark_promo)};
}

}  // namespace memtuned
