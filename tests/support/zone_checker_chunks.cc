// SPDX-License-Identifier: Apache-2.0
// ZoneChecker's look at chunks: pagesets, depots, empties, and none lost.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

const char* PlaceName(ChunkPlace place) {
  constexpr const char* kNames[] = {"unused", "empty", "thread", "pageset",
                                    "depot"};
  return static_cast<size_t>(place) < 5 ? kNames[static_cast<size_t>(place)]
                                        : "unknown";
}

}  // namespace

bool ZoneChecker::HandedOut(uint32_t number) const {
  for (int i = 0; i < kNumEmptyStacks; ++i) {
    const ChunkStack& stack = m_.empty_chunks[i];
    if (number >= LoadRelaxed(stack.fresh_begin) &&
        number < LoadRelaxed(stack.fresh)) {
      return true;
    }
  }
  return false;
}

uint64_t ZoneChecker::Visit(uint32_t number, ChunkPlace place, int list,
                            uint32_t ref, uint32_t zone, uint32_t count,
                            const std::string& where) {
  if (!HandedOut(number)) {
    Fail(absl::StrCat(where, ": ", number, " is no chunk"));
    return 0;
  }
  if (visited_[number]) {
    Fail(absl::StrCat(where, ": chunk ", number, " is also elsewhere"));
    return 0;
  }
  visited_[number] = true;
  const uint64_t word = LoadRelaxed(m_.chunks[number].word);
  if (word != ChunkWord(place, list, ref)) {
    Fail(absl::StrCat(where, ": chunk ", number, " says ",
                      PlaceName(PlaceOf(word)), ", list ", ListOfWord(word),
                      ", ref ", RefOfWord(word)));
    return 0;
  }
  if (place == ChunkPlace::kEmpty) return 0;
  if (count > kChunkBlocks) {
    Fail(absl::StrCat(where, ": chunk ", number, " counts ", count, " blocks"));
    return 0;
  }
  items_of_[number] = count;
  const int order = ListOrder(list);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t pfn = LoadRelaxed(m_.chunks[number].items[i]);
    if (pfn >= m_.nr_pages) {
      Fail(absl::StrCat(where, ": chunk ", number, " item ", i, " is page ",
                        pfn, " of ", m_.nr_pages));
      return 0;
    }
    const PageWord page(LoadRelaxed(m_.memmap[pfn].word));
    if (!page.Is(PageKind::kCached, order) || page.ref() != number ||
        LoadRelaxed(m_.sections[pfn >> kSectionShift].zone) != zone) {
      Fail(absl::StrCat(where, ": chunk ", number, " item ", i, ", page ", pfn,
                        ", does not say so: kind ",
                        static_cast<int>(page.kind()), " order ", page.order(),
                        " ref ", page.ref()));
      return 0;
    }
  }
  return uint64_t{count} << order;
}

uint64_t ZoneChecker::CheckDeque(const PagesetShared& pageset, int list) {
  const auto l = static_cast<size_t>(list);
  const PagesetList& rest = pageset.lists[l];
  const uint32_t number = m_.NumberOf(pageset);
  const std::string where =
      absl::StrCat("pageset ", number, " list ", list, " deque");
  uint64_t pages = 0;
  uint32_t found = 0;
  uint32_t previous = kNoChunk;
  uint32_t chunk = LoadRelaxed(rest.hot);
  for (; chunk != kNoChunk && !failed(); ++found) {
    pages += Visit(
        chunk, ChunkPlace::kPageset, list, number, number / m_.nr_cpus,
        chunk < m_.nr_chunks ? LoadRelaxed(m_.chunks[chunk].count) : 0, where);
    if (failed()) return 0;
    if (LoadRelaxed(m_.chunks[chunk].prev) != previous) {
      Fail(absl::StrCat(where, ": chunk ", chunk, " has a wrong back link"));
    }
    previous = chunk;
    chunk = LoadRelaxed(m_.chunks[chunk].next);
  }
  if (previous != LoadRelaxed(rest.cold) ||
      found != LoadRelaxed(rest.nr_deque)) {
    Fail(absl::StrCat(where, ": ends at ", previous, " after ", found,
                      " chunks; it says ", LoadRelaxed(rest.cold), " after ",
                      LoadRelaxed(rest.nr_deque)));
  }
  return pages;
}

void ZoneChecker::CheckPageset(const ZoneShared& zone, uint32_t cpu) {
  const PagesetShared& pageset = *m_.PagesetOf(zone.number, cpu);
  const uint32_t number = m_.NumberOf(pageset);
  uint64_t pages = 0;
  for (int list = 0; list < kNumLists && !failed(); ++list) {
    const auto l = static_cast<size_t>(list);
    const std::string where = absl::StrCat("pageset of zone ", zone.number,
                                           " cpu ", cpu, " list ", list);
    const uint64_t top = LoadRelaxed(pageset.top[l]);
    if (TopChunk(top) != kNoChunk) {
      pages += Visit(TopChunk(top), ChunkPlace::kPageset, list, number,
                     zone.number, TopCount(top), where);
    } else if (TopCount(top) != 0) {
      Fail(absl::StrCat(where, ": counts blocks without a chunk"));
    }
    const uint32_t spare = LoadRelaxed(pageset.lists[l].spare);
    if (spare != kNoChunk && !failed()) {
      pages +=
          Visit(spare, ChunkPlace::kPageset, list, number, zone.number,
                spare < m_.nr_chunks ? LoadRelaxed(m_.chunks[spare].count) : 0,
                where + " spare");
    }
    if (!failed()) pages += CheckDeque(pageset, list);
  }
  if (!failed() && pages != LoadRelaxed(pageset.pages)) {
    Fail(absl::StrCat("pageset of zone ", zone.number, " cpu ", cpu, " says ",
                      LoadRelaxed(pageset.pages), " pages, its chunks have ",
                      pages));
  }
}

void ZoneChecker::CheckDepot(const ZoneShared& zone) {
  for (int list = 0; list < kNumLists && !failed(); ++list) {
    const ChunkStack& stack = zone.depot[static_cast<size_t>(list)];
    const uint64_t head = LoadRelaxed(stack.head);
    const std::string where =
        absl::StrCat("depot of zone ", zone.number, " list ", list);
    uint64_t pages = 0;
    uint32_t found = 0;
    uint32_t chunk = ChunkStack::ChunkOf(head);
    for (; chunk != kNoChunk && !failed(); ++found) {
      const bool sane = chunk < m_.nr_chunks;
      const uint32_t count = sane ? LoadRelaxed(m_.chunks[chunk].count) : 0;
      pages += Visit(chunk, ChunkPlace::kDepot, list, zone.number, zone.number,
                     count, where);
      if (sane) chunk = LoadRelaxed(m_.chunks[chunk].next);
    }
    if (!failed() && found != ChunkStack::CountOf(head)) {
      Fail(absl::StrCat(where, " says ", ChunkStack::CountOf(head),
                        " chunks, has ", found));
    }
    if (!failed() && pages != stack.PagesNow()) {
      Fail(absl::StrCat(where, " says ", stack.PagesNow(), " pages, has ",
                        pages));
    }
  }
}

void ZoneChecker::CheckEmpties() {
  for (int i = 0; i < kNumEmptyStacks; ++i) {
    uint32_t chunk = ChunkStack::ChunkOf(LoadRelaxed(m_.empty_chunks[i].head));
    while (chunk != kNoChunk && !failed()) {
      Visit(chunk, ChunkPlace::kEmpty, 0, 0, 0, 0,
            absl::StrCat("stack of empty chunks ", i));
      if (!failed()) chunk = LoadRelaxed(m_.chunks[chunk].next);
    }
  }
}

void ZoneChecker::CheckLostChunks() {
  for (int stack = 0; stack < kNumEmptyStacks; ++stack) {
    const ChunkStack& empties = m_.empty_chunks[stack];
    const uint32_t end = std::min(LoadRelaxed(empties.fresh), m_.nr_chunks);
    for (uint32_t i = LoadRelaxed(empties.fresh_begin); i < end; ++i) {
      if (visited_[i]) continue;
      const uint64_t word = LoadRelaxed(m_.chunks[i].word);
      Fail(absl::StrCat("chunk ", i, " is nowhere; it says ",
                        PlaceName(PlaceOf(word)), ", list ", ListOfWord(word),
                        ", ref ", RefOfWord(word)));
    }
  }
  if (heads_of_ == items_of_) return;
  for (uint32_t i = 1; i < m_.nr_chunks && !failed(); ++i) {
    if (heads_of_[i] == items_of_[i]) continue;
    Fail(absl::StrCat("chunk ", i, " holds ", items_of_[i], " blocks, ",
                      heads_of_[i], " say they are in it"));
  }
}

}  // namespace memtuned
