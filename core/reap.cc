// SPDX-License-Identifier: Apache-2.0
#include "core/reap.h"

#include <algorithm>
#include <span>

#include "core/mm/chunk_pool.h"
#include "core/mm/owners.h"
#include "core/mm/pageset.h"
#include "core/recalculate.h"
#include "core/slot_table.h"

namespace memtuned {
namespace {

struct Block {
  Pfn pfn;
  PageWord word{0};
};

bool HeldBy(PageWord word, ProcessOwner owner) {
  return (word.kind() == PageKind::kAllocated ||
          word.kind() == PageKind::kOffered) &&
         word.ref() == owner;
}

// Frees up to 64 blocks under one hold. An offered block may be adopted until
// then: its word has moved.
bool FreeBlocks(Zone& zone, std::span<const Block> blocks,
                ThreadContext& reaper, ReapResult* result) {
  uint64_t pages = 0;
  reaper.patience.Renew();
  if (!zone.Lock(reaper)) return false;
  for (const Block& block : blocks) {
    if (!zone.GiveBlockLocked(block.pfn, block.word)) continue;
    pages += uint64_t{1} << block.word.order();
    ++result->blocks;
  }
  zone.Unlock(pages);
  result->pages += pages;
  return true;
}

bool ReapSection(Segment& segment, uint32_t number, ProcessOwner owner,
                 ThreadContext& reaper, ReapResult* result) {
  const Mapping& m = segment.mapping();
  Zone& zone = segment.zone(m.ZoneOfSection(number));
  const uint32_t start = number << kSectionShift;
  const uint32_t end = start + m.PagesOfSection(number);
  Block found[kChunkBlocks];
  size_t n = 0;
  for (uint32_t at = start; at < end;) {
    const PageWord word(LoadRelaxed(m.memmap[at].word));
    uint32_t step = 1;
    if (HeldBy(word, owner) && m.IsBlock(Pfn{at}, word.order())) {
      // Inner words never say allocated, so that stepping by a block that
      // changes meanwhile can only cost time.
      step = 1u << word.order();
      found[n++] = {Pfn{at}, word};
    }
    at += step;
    if (n == kChunkBlocks || (at >= end && n > 0)) {
      if (!FreeBlocks(zone, {found, n}, reaper, result)) return false;
      n = 0;
    }
  }
  return true;
}

bool RecoverZone(Segment& segment, Zone& zone, ThreadContext& thread) {
  const Mapping& m = segment.mapping();
  ZoneShared& z = zone.shared();
  bool all = true;
  if (OwnerDied(m, z.lock.HolderNow())) {
    thread.patience.Renew();
    if (zone.Lock(thread)) {
      zone.Unlock(0);
    } else {
      all = false;
    }
  }
  ChunkPool chunks(m, thread);
  for (int list = 0; list < kNumLists; ++list) {
    ChunkStack& stack = z.depot[static_cast<size_t>(list)];
    chunks.RecoverStack(stack, ChunkPool::DepotPlace(zone.info().number, list));
    all &= !OwnerDied(m, stack.lock.HolderNow());
  }
  for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
    if ((LoadRelaxed(z.used_cpus[cpu / 64]) >> (cpu % 64) & 1) == 0) continue;
    PagesetShared& pageset = *m.PagesetOf(zone.info().number, cpu);
    thread.patience.Renew();
    Pageset(m, zone, pageset, thread).Recover();
    all &= !OwnerDied(m, pageset.guard.HolderNow());
  }
  return all;
}

// The chunk that a thread had in hand, with the blocks whose words say so.
bool ReapChunk(Segment& segment, ThreadSlot& slot, uint32_t number,
               ThreadContext& reaper) {
  const Mapping& m = segment.mapping();
  const uint64_t word = LoadRelaxed(m.chunks[number].word);
  if (PlaceOf(word) != ChunkPlace::kThread ||
      RefOfWord(word) != LoadRelaxed(slot.owner)) {
    Store(slot.pending, uint64_t{0});
    return true;
  }
  ChunkPool chunks(m, reaper);
  for (Zone& zone : segment.zones()) {
    reaper.patience.Renew();
    if (!zone.Lock(reaper)) return false;
    zone.Unlock(zone.FreeAllOfChunkLocked(number));
  }
  chunks.PickUp(number);
  chunks.MarkThread(number, 0);
  ForEachPending(m, [&](ThreadSlot& other, uint32_t named) {
    if (named == number && &other != reaper.slot) {
      Store(other.pending, uint64_t{0});
    }
  });
  Store(m.chunks[number].count, 0u);
  chunks.GiveEmpty(number);
  return true;
}

}  // namespace

bool RecoverDeadOwners(Segment& segment, ThreadContext& thread) {
  const Mapping& m = segment.mapping();
  bool all = true;
  thread.patience.Renew();
  if (OwnerDied(m, segment.header().tuning_lock.HolderNow())) {
    if (LockTuning(segment, thread.owner, thread.patience)) {
      segment.header().tuning_lock.Unlock();
    } else {
      all = false;
    }
  }
  ChunkPool chunks(m, thread);
  for (int i = 0; i < kNumEmptyStacks; ++i) {
    chunks.RecoverStack(m.empty_chunks[i], ChunkPool::EmptyPlace());
    all &= !OwnerDied(m, m.empty_chunks[i].lock.HolderNow());
  }
  for (Zone& zone : segment.zones()) all &= RecoverZone(segment, zone, thread);
  if (LimitsOverdue(segment)) {
    Recalculate(segment,
                segment.Initialised() ? RecalculateTrigger::kInitialised
                                      : RecalculateTrigger::kSection,
                thread.owner);
  }
  return all;
}

bool ReapThreads(Segment& segment, ProcessOwner process,
                 ThreadContext& reaper) {
  const Mapping& m = segment.mapping();
  bool all = true;
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    ThreadSlot& slot = m.threads[i];
    if (LoadRelaxed(slot.process) != process) continue;
    const ThreadOwner owner = LoadRelaxed(slot.owner);
    if (owner != 0 && !OwnerDied(m, owner)) continue;
    const uint32_t chunk = PendingChunk(LoadRelaxed(slot.pending));
    if (chunk != kNoChunk && chunk < m.nr_chunks &&
        !ReapChunk(segment, slot, chunk, reaper)) {
      all = false;
      continue;
    }
    ReleaseDeadThreadSlot(segment, slot);
  }
  return all;
}

ReapResult ReapProcess(Segment& segment, ProcessOwner owner,
                       ThreadContext& reaper) {
  ReapResult result;
  const Mapping& m = segment.mapping();
  ProcessSlot* slot = FindProcessSlot(segment, owner);
  if (slot == nullptr) {
    result.done = true;
    return result;
  }
  Store(slot->state, static_cast<uint32_t>(SlotState::kReaping));
  // The kernel marked them, unless somebody wrote over the words.
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    if (LoadRelaxed(m.threads[i].process) == owner) {
      m.lives[i].word.fetch_or(kLifeDied);
    }
  }
  if (!RecoverDeadOwners(segment, reaper) ||
      !ReapThreads(segment, owner, reaper)) {
    return result;
  }
  const uint32_t words = m.words_of_sections();
  const Shared64* bits =
      m.process_sections + size_t{ProcessSlotOf(owner)} * words;
  for (uint32_t w = 0; w < words; ++w) {
    for (uint64_t left = LoadRelaxed(bits[w]); left != 0; left &= left - 1) {
      const uint32_t section =
          w * 64 + static_cast<uint32_t>(__builtin_ctzll(left));
      if (section >= m.nr_sections) break;
      if (!ReapSection(segment, section, owner, reaper, &result)) {
        return result;
      }
    }
  }
  ReleaseProcessSlot(segment, owner);
  result.done = true;
  return result;
}

}  // namespace memtuned
