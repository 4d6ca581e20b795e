// SPDX-License-Identifier: Apache-2.0
#include "core/reap.h"

#include <algorithm>

#include "core/mm/chunk.h"
#include "core/slot_table.h"

namespace memtuned {
namespace {

struct Block {
  Pfn pfn;
  int order;
};

bool HeldBy(PageWord word, ProcessOwner owner) {
  return (word.kind() == PageKind::kAllocated ||
          word.kind() == PageKind::kOffered) &&
         word.ref() == owner;
}

// Frees up to 64 blocks under one hold. An offered block may be adopted until
// its word is claimed here.
void FreeBlocks(Segment& segment, Zone& zone, const Block* blocks, size_t n,
                ProcessOwner owner, ThreadOwner reaper, ReapResult* result) {
  const Mapping& m = segment.mapping();
  uint64_t pages = 0;
  zone.Lock(reaper);
  for (size_t i = 0; i < n; ++i) {
    Shared64& where = m.page(blocks[i].pfn).word;
    const PageWord word(LoadRelaxed(where));
    if (!HeldBy(word, owner) || word.order() != blocks[i].order) continue;
    uint64_t expected = word.bits();
    if (!Exchange(
            where, expected,
            word.With(PageKind::kCached, word.order(), kNoChunk).bits())) {
      continue;
    }
    zone.GiveBlockLocked(blocks[i].pfn, blocks[i].order);
    pages += uint64_t{1} << blocks[i].order;
    ++result->blocks;
  }
  zone.Unlock(pages);
  result->pages += pages;
}

void ReapSection(Segment& segment, uint32_t number, ProcessOwner owner,
                 ThreadOwner reaper, ReapResult* result) {
  const Mapping& m = segment.mapping();
  const uint32_t zone_number = LoadRelaxed(m.sections[number].zone);
  if (zone_number >= m.nr_zones) return;
  Zone& zone = segment.zone(zone_number);
  const uint32_t start = number << kSectionShift;
  const uint32_t end =
      std::min(start + LoadRelaxed(m.sections[number].pages), m.nr_pages);
  Block found[kChunkBlocks];
  size_t n = 0;
  for (uint32_t at = start; at < end;) {
    const PageWord word(LoadRelaxed(m.memmap[at].word));
    if (HeldBy(word, owner)) {
      found[n++] = {Pfn{at}, word.order()};
      if (n == kChunkBlocks) {
        FreeBlocks(segment, zone, found, n, owner, reaper, result);
        n = 0;
      }
    }
    // Inner words never say allocated, so stepping by a block that changes
    // meanwhile can only cost time.
    at += HeldBy(word, owner) ? 1u << word.order() : 1;
  }
  if (n > 0) FreeBlocks(segment, zone, found, n, owner, reaper, result);
}

}  // namespace

ReapResult ReapProcess(Segment& segment, ProcessOwner owner,
                       ThreadOwner reaper) {
  ReapResult result;
  const Mapping& m = segment.mapping();
  ProcessSlot* slot = FindProcessSlot(segment, owner);
  if (slot == nullptr) return result;
  Store(slot->state, static_cast<uint32_t>(SlotState::kReaping));
  const uint32_t words = m.words_of_sections();
  const Shared64* bits =
      m.process_sections + size_t{ProcessSlotOf(owner)} * words;
  for (uint32_t w = 0; w < words; ++w) {
    for (uint64_t left = LoadRelaxed(bits[w]); left != 0; left &= left - 1) {
      const uint32_t section =
          w * 64 + static_cast<uint32_t>(__builtin_ctzll(left));
      if (section >= m.nr_sections) break;
      ReapSection(segment, section, owner, reaper, &result);
    }
  }
  ReleaseProcessSlot(segment, owner);
  return result;
}

}  // namespace memtuned
