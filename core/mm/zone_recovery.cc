// SPDX-License-Identifier: Apache-2.0
// The zone lock in the hands of a thread that died. Its intent says what it
// was changing; the words say how far it came. Every step here can be done
// twice, as whoever takes over may die as well.
#include <algorithm>
#include <array>

#include "core/mm/zone.h"

namespace memtuned {
namespace {

constexpr uint32_t kAreaPages = 1u << kMaxOrder;
constexpr uint32_t kNumberMask = (1u << 29) - 1;

constexpr uint32_t EncodeIntent(IntentKind kind, uint32_t number,
                                PageType type) {
  return static_cast<uint32_t>(kind) << 30 | static_cast<uint32_t>(type) << 29 |
         number;
}

// What the words of one area say, after merging.
struct AreaBlocks {
  static constexpr int8_t kNotFree = -1;
  std::array<int8_t, kAreaPages> order;  // of the free block that begins here
  uint32_t pages = 0;                    // that exist
  uint32_t free_pages = 0;
};

}  // namespace

void Zone::OpenIntentLocked(IntentKind kind, uint32_t number, PageType type) {
#ifdef MEMTUNED_NO_RECOVERY  // only a measurement of what it costs
  if (kind == IntentKind::kArea) return;
#endif
  const uint32_t what = EncodeIntent(kind, number, type);
  ZoneIntent& intent = z_->intent;
  if (LoadRelaxed(intent.what) == what) return;
  Store(intent.what, kNil);
  if (kind == IntentKind::kArea) {
    Store(intent.area_free, LoadRelaxed(AreaFree(number)));
  }
  Store(intent.free_pages, LoadRelaxed(z_->free_pages));
  Store(intent.managed_pages, LoadRelaxed(z_->managed_pages));
  Store(intent.nr_pristine, uint64_t{LoadRelaxed(z_->nr_pristine)});
  Store(intent.bit, uint64_t{0});
  Store(intent.what, what);
}

void Zone::CloseIntentLocked() { Store(z_->intent.what, kNil); }

void Zone::RecoverLocked() {
  const uint32_t what = LoadRelaxed(z_->intent.what);
  if (what == kNil) return;
  const uint32_t number = what & kNumberMask;
  const auto type = static_cast<PageType>(what >> 29 & 1);
  const auto kind = static_cast<IntentKind>(what >> 30);
  const uint32_t section =
      kind == IntentKind::kArea ? number / SectionFreeAreas::kAreas : number;
  if (kind > IntentKind::kOnline || section >= mapping_->nr_sections ||
      mapping_->ZoneOfSection(section) != info_->number) {
    z_->Degrade(Degraded::kIntent);
    CloseIntentLocked();
    return;
  }
#ifndef MEMTUNED_MUTANT_NO_AREA_REBUILD  // only a test leaves it out
  areas_.Repair(section);
  switch (kind) {
    case IntentKind::kArea:
      RebuildAreaLocked(number);
      break;
    case IntentKind::kCarve:
      EndCarveLocked(section, type);
      break;
    case IntentKind::kOnline:
      EndOnlineLocked(section);
      break;
  }
#endif
  CloseIntentLocked();
}

namespace {

// Heads tile an area at any moment: a block's halves are cut and joined by one
// store each.
AreaBlocks ReadArea(const Mapping& m, uint32_t first, uint32_t pages) {
  AreaBlocks blocks;
  blocks.order.fill(AreaBlocks::kNotFree);
  blocks.pages = pages;
  for (uint32_t at = 0; at < pages;) {
    const PageWord word(LoadRelaxed(m.memmap[first + at].word));
    const int order = std::min(word.order(), kMaxOrder);
    const uint32_t size = 1u << order;
    if (word.kind() == PageKind::kFree && (at & (size - 1)) == 0 &&
        at + size <= pages) {
      blocks.order[at] = static_cast<int8_t>(order);
      blocks.free_pages += size;
#ifndef MEMTUNED_MUTANT_NO_HEAD_TEST  // only a test leaves it out
      // A refill writes a block's inner words before its head's, which
      // commits. Without it they must not be taken for blocks in a chunk.
      for (uint32_t i = 1; i < size; ++i) {
        Shared64& inner = m.memmap[first + at + i].word;
        const PageWord said(LoadRelaxed(inner));
        if (said.kind() == PageKind::kCached) {
          Store(inner, said.With(PageKind::kUntouched, 0, 0).bits());
        }
      }
#endif
    }
    at += size;
  }
  return blocks;
}

}  // namespace

void Zone::RebuildAreaLocked(uint32_t area) {
  const uint32_t first = area << kMaxOrder;
  const uint32_t number = area / SectionFreeAreas::kAreas;
  const uint32_t in_section = first & (kPagesPerSection - 1);
  const uint32_t section_pages = mapping_->PagesOfSection(number);
  if (in_section >= section_pages) return;
  AreaBlocks blocks = ReadArea(
      *mapping_, first, std::min(kAreaPages, section_pages - in_section));
  const auto type_at = [&](uint32_t at) { return BlockType(Pfn{first + at}); };
  const auto set_word = [&](uint32_t at, int order) {
    Shared64& where = mapping_->memmap[first + at].word;
    const PageWord word(LoadRelaxed(where));
    const PageWord right =
        word.With(PageKind::kFree, order, 0).WithType(type_at(at));
    if (word.bits() != right.bits()) Store(where, right.bits());
  };
  for (uint32_t at = 0; at < blocks.pages; ++at) {
    if (blocks.order[at] >= 0) set_word(at, blocks.order[at]);
  }
  for (int o = 0; o < kMaxOrder; ++o) {
    const uint32_t half = 1u << o;
    for (uint32_t at = 0; at + 2 * half <= blocks.pages; at += 2 * half) {
      if (blocks.order[at] != o || blocks.order[at + half] != o ||
          type_at(at) != type_at(at + half)) {
        continue;
      }
      set_word(at, o + 1);
      blocks.order[at] = static_cast<int8_t>(o + 1);
      blocks.order[at + half] = AreaBlocks::kNotFree;
    }
  }
  for (int o = 0; o < kNumOrders; ++o) {
    for (uint32_t at = 0; at + (1u << o) <= blocks.pages; at += 1u << o) {
      for (PageType type : {PageType::kOrdinary, PageType::kPurgeable}) {
        const bool wanted = blocks.order[at] == o && type_at(at) == type;
        const Pfn pfn{first + at};
        if (areas_.Test(type, o, pfn) == wanted) continue;
        if (wanted) {
          areas_.Set(type, o, pfn);
        } else {
          areas_.Clear(type, o, pfn);
        }
      }
    }
  }
  Store(AreaFree(area), blocks.free_pages);
  Store(z_->free_pages, LoadRelaxed(z_->intent.free_pages) -
                            LoadRelaxed(z_->intent.area_free) +
                            blocks.free_pages);
}

}  // namespace memtuned
