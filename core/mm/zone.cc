// SPDX-License-Identifier: Apache-2.0
// Blocks come and go; sections are in zone_sections.cc, what a death leaves
// half done in zone_recovery.cc.
#include "core/mm/zone.h"

#include <algorithm>
#include <bit>

#include "core/mm/owners.h"

namespace memtuned {
namespace {

PageWord WordOf(const Page& page) { return PageWord(LoadRelaxed(page.word)); }

void SetWord(Page& page, PageWord word) { Store(page.word, word.bits()); }

}  // namespace

const char* ZoneKindName(ZoneKind kind) {
  return kind == ZoneKind::kNormal ? "Normal" : "Movable";
}

const char* DegradedReason(Degraded reason) {
  switch (reason) {
    case Degraded::kFreeArea:
      return "a free area lists pages that are not free";
    case Degraded::kChunk:
      return "a chunk lists pages that are not in it";
    case Degraded::kBlock:
      return "a page's word describes no block";
    case Degraded::kIntent:
      return "the note of a change under way makes no sense";
    case Degraded::kCounts:
      return "counts of pages contradict each other";
    case Degraded::kTunable:
      return "a tunable in shared memory is out of its range";
    case Degraded::kChunks:
      return "a list of chunks does not end";
    case Degraded::kNo:
      return "";
    case Degraded::kCount:
      break;
  }
  return "its state was overwritten";
}

bool Zone::Lock(ThreadContext& thread) {
  LockWait wait;
  if (!LockCounted(z_->lock, z_->lock_counters, thread.owner,
                   ProbeOf(*mapping_), thread.patience, &wait)) {
    return false;
  }
  if (MEMTUNED_UNLIKELY(wait.taken_over)) {
    CountTakeover(*mapping_, LockKind::kZone);
    RecoverLocked();
  }
  return true;
}

void Zone::Lock(ThreadOwner owner) NO_THREAD_SAFETY_ANALYSIS {
  ThreadContext thread;
  thread.owner = owner;
  Lock(thread);
}

void Zone::Unlock(uint64_t pages) {
  if (pages > LoadRelaxed(z_->hold_pages_max)) {
    Store(z_->hold_pages_max, pages);
  }
  CloseIntentLocked();
  z_->lock.Unlock();
}

void Zone::AddFreeLocked(Pfn pfn, int64_t pages) {
  Shared32& area_free = AreaFree(pfn.value >> kMaxOrder);
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

int Zone::SmallestOrder(int order, PageType type) const {
  for (int o = order; o < kNumOrders; ++o) {
    if (areas_.Count(type, o) != 0) return o;
  }
  return -1;
}

Pfn Zone::FindLocked(PageType type, int order) {
  constexpr int kMostWrongBits = 64;
  for (int i = 0; i < kMostWrongBits; ++i) {
    const Pfn pfn = areas_.Find(type, order);
    if (pfn.value >= mapping_->nr_pages) break;
    if (MEMTUNED_LIKELY(
            WordOf(mapping_->page(pfn)).Is(PageKind::kFree, order))) {
      return pfn;
    }
    // Nobody does this but a process that writes where it should not.
    z_->Degrade(Degraded::kFreeArea);
    OpenAreaLocked(pfn);
    areas_.Clear(type, order, pfn);
  }
  return Pfn{kNil};
}

Pfn Zone::DetachLocked(PageType type, int from_order, int to_order) {
  const Pfn pfn = FindLocked(type, from_order);
  if (MEMTUNED_UNLIKELY(pfn.value == kNil)) return pfn;
  Page& head = mapping_->page(pfn);
  const PageWord word = WordOf(head);
  OpenAreaLocked(pfn);
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
  const uint32_t start = std::min(LoadRelaxed(chunk.count), kChunkBlocks);
  want = std::min(want, kChunkBlocks - start);
  uint32_t n = 0;
  while (n < want) {
    PageType source;
    if (!SourceLocked(order, type, source)) break;
    const int found = SmallestOrder(order, source);
    const int most = order + static_cast<int>(std::bit_width(want - n)) - 1;
    const int taken = std::min(found, most);
    const Pfn block = DetachLocked(source, found, taken);
    if (MEMTUNED_UNLIKELY(block.value == kNil)) break;
    const uint32_t m = 1u << (taken - order);
    for (uint32_t i = 0; i < m; ++i) {
      Store(chunk.items[start + n + i], block.value + ((m - 1 - i) << order));
    }
    // The array covers the blocks before their words say so; the head's word
    // goes last and commits them all.
    Store(chunk.count, start + n + m);
    const auto mark = [&](uint32_t i) {
      Page& page = mapping_->page(Pfn{block.value + (i << order)});
      SetWord(page, WordOf(page)
                        .With(PageKind::kCached, order, chunk_number)
                        .WithType(source));
    };
#ifndef MEMTUNED_MUTANT_HEAD_FIRST  // only a test has it the other way
    for (uint32_t i = m; i-- > 0;) mark(i);
#else
    for (uint32_t i = 0; i < m; ++i) mark(i);
#endif
    AddFreeLocked(block, -static_cast<int64_t>(m << order));
    n += m;
  }
  for (uint32_t i = 0; i < n; ++i) env::Charge(env::Cost::kZoneTake);
  return n;
}

void Zone::FreeFromChunkLocked(uint32_t chunk_number, int order,
                               uint32_t blocks) {
  Chunk& chunk = mapping_->chunks[chunk_number];
  uint32_t count = std::min(LoadRelaxed(chunk.count), kChunkBlocks);
  for (; blocks > 0 && count > 0; --blocks) {
    --count;
    const Pfn pfn{LoadRelaxed(chunk.items[count])};
    const PageWord word(pfn.value < mapping_->nr_pages
                            ? WordOf(mapping_->page(pfn))
                            : PageWord(0));
    if (MEMTUNED_LIKELY(word.HasState(PageWord::State(PageKind::kCached, order,
                                                      chunk_number)) &&
                        Owns(pfn))) {
      GiveBlockLocked(pfn, word);
    } else {
      z_->Degrade(Degraded::kChunk);
    }
    Store(chunk.count, count);
  }
}

uint64_t Zone::FreeAllOfChunkLocked(uint32_t chunk_number) {
  Chunk& chunk = mapping_->chunks[chunk_number];
  uint64_t pages = 0;
  for (const Shared32& item : chunk.items) {
    const Pfn pfn{LoadRelaxed(item)};
    if (pfn.value >= mapping_->nr_pages || !Owns(pfn)) continue;
    const PageWord word = WordOf(mapping_->page(pfn));
    if (word.kind() != PageKind::kCached || word.ref() != chunk_number) {
      continue;
    }
    if (GiveBlockLocked(pfn, word)) pages += uint64_t{1} << word.order();
  }
  return pages;
}

Pfn Zone::TakeBlockLocked(int order, PageType type, ProcessOwner owner) {
  PageType source;
  if (!SourceLocked(order, type, source)) return Pfn{kNil};
  const Pfn pfn = DetachLocked(source, SmallestOrder(order, source), order);
  if (MEMTUNED_UNLIKELY(pfn.value == kNil)) return pfn;
  mapping_->FlagSection(owner, pfn);
  Page& page = mapping_->page(pfn);
  SetWord(page, WordOf(page).With(PageKind::kAllocated, order, owner));
  AddFreeLocked(pfn, -(int64_t{1} << order));
  env::Charge(env::Cost::kZoneTake);
  return pfn;
}

bool Zone::GiveBlockLocked(Pfn pfn, PageWord word) {
  const int order = word.order();
  if (MEMTUNED_UNLIKELY(!mapping_->IsBlock(pfn, order) || !Owns(pfn))) {
    z_->Degrade(Degraded::kBlock);
    return false;
  }
  OpenAreaLocked(pfn);
  const PageType type = BlockType(pfn);
#ifdef MEMTUNED_MUTANT_LEFT_HEAD_FIRST  // only a test joins before it frees
  const Pfn left{pfn.value & ~(1u << order)};
  const bool first =
      left != pfn && WordOf(mapping_->page(left)).Is(PageKind::kFree, order);
  if (first) MergeLocked(pfn, order, type);
#else
  constexpr bool first = false;
#endif
  // Commits: free, next generation. By compare and swap, so that of two CPUs
  // that free it only one wins.
  uint64_t expected = word.bits();
  if (!Exchange(mapping_->page(pfn).word, expected,
                word.NextGeneration()
                    .With(PageKind::kFree, order, 0)
                    .WithType(type)
                    .bits())) {
    return false;
  }
  if (!first) MergeLocked(pfn, order, type);
  AddFreeLocked(pfn, int64_t{1} << order);
  env::Charge(env::Cost::kZoneGive);
  return true;
}

void Zone::MergeLocked(Pfn pfn, int order, PageType type) {
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
              (kPagesPerSection >> kMaxOrder);
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
