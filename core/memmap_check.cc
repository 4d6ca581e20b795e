// SPDX-License-Identifier: Apache-2.0
#include "core/memmap_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

bool IsBlock(const Mapping& m, uint32_t pfn, uint32_t end, PageWord word) {
  if (word.order() > kMaxOrder || (pfn & ((1u << word.order()) - 1)) != 0 ||
      pfn + (1u << word.order()) > end) {
    return false;
  }
  switch (word.kind()) {
    case PageKind::kFree:
      return true;
    case PageKind::kCached:  // in no chunk while it is given back
      return word.ref() < m.nr_chunks;
    case PageKind::kAllocated:
    case PageKind::kOffered:
      return word.ref() != 0;
    default:
      return false;
  }
}

// Returns: the first page of [at, end) that is no head where one has to be;
// kNil when there is none.
uint32_t FirstWrong(const Mapping& m, uint32_t at, uint32_t end) {
  while (at < end) {
    const PageWord word(LoadRelaxed(m.memmap[at].word));
    if (!IsBlock(m, at, end, word)) return at;
    at += 1u << word.order();
  }
  return kNil;
}

uint32_t FirstWrongLocked(Segment& segment, Zone& zone, uint32_t at,
                          uint32_t end, ThreadContext& thread) {
  thread.patience.Renew();
  if (!zone.Lock(thread)) return kNil;
  const uint32_t wrong = FirstWrong(segment.mapping(), at, end);
  zone.Unlock(0);
  return wrong;
}

absl::Status CheckSection(Segment& segment, uint32_t number,
                          ThreadContext& thread) {
  constexpr uint32_t kAreaPages = 1u << kMaxOrder;
  const Mapping& m = segment.mapping();
  Zone& zone = segment.zone(m.ZoneOfSection(number));
  const uint32_t first = number << kSectionShift;
  const uint32_t end = first + m.PagesOfSection(number);
  for (uint32_t at = first; at < end; at += kAreaPages) {
    const uint32_t area_end = std::min(at + kAreaPages, end);
    if (FirstWrong(m, at, area_end) == kNil) continue;
    const uint32_t wrong =
        FirstWrongLocked(segment, zone, at, area_end, thread);
    if (wrong == kNil) continue;
    const PageWord word(LoadRelaxed(m.memmap[wrong].word));
    return absl::DataLossError(
        absl::StrCat("segment: page ", wrong, " of section ", number,
                     " is no block: kind ", static_cast<int>(word.kind()),
                     ", order ", word.order(), ", ref ", word.ref()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMemmap(Segment& segment, ThreadContext& thread) {
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_sections; ++i) {
    // Untouched ones have no memmap yet.
    if (Load(m.sections[i].state) !=
        static_cast<uint32_t>(SectionState::kCarved)) {
      continue;
    }
    if (absl::Status s = CheckSection(segment, i, thread); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace memtuned
