// SPDX-License-Identifier: Apache-2.0
// A zone: one node's pages, their buddy free areas, lock and watermarks.
// Blocks of 2^order pages, order 0..10; the buddy of a block at order o is
// pfn XOR 2^o; a freed block merges upwards as long as its buddy is a free
// block of the same order and type. The zone takes and gives blocks; it knows
// nothing of pagesets. Floor 1.
#ifndef MEMTUNED_CORE_MM_ZONE_H_
#define MEMTUNED_CORE_MM_ZONE_H_

#include <cstdint>

#include "core/mm/free_area.h"
#include "core/mm/mapping.h"
#include "core/mm/watermark.h"

namespace memtuned {

// The free pages an allocation must leave a zone with. On the last attempt
// before an allocation fails, whether there is a block is looked up under the
// lock: a glance misses blocks that are being split or merged.
struct Mark {
  Mark(uint64_t pages_kept, bool is_last_attempt = false)
      : pages(pages_kept), last_attempt(is_last_attempt) {}
  uint64_t pages;
  bool last_attempt;
};

// A view of one zone in this process. Cheap to copy.
// Thread safety: any thread of any attached process, as the locks say.
class Zone {
 public:
  Zone(const Mapping& mapping, ZoneShared& shared)
      : mapping_(&mapping),
        info_(&mapping.zone_info[&shared - mapping.zones]),
        z_(&shared),
        areas_(mapping, shared) {}

  ZoneShared& shared() const { return *z_; }
  ShmLock<LockRank::kZone>& lock() const RETURN_CAPABILITY(z_->lock) {
    return z_->lock;
  }
  const ZoneInfo& info() const { return *info_; }
  uint32_t node() const { return info_->node; }

  // Takes the zone lock and counts it. From a holder that died it is taken
  // over, and what that one was changing is ended first.
  // Blocks: while another holds it, as long as the thread's operation has
  // patience; policy memtuned moves at most 64 blocks under it.
  // Returns: false when the holder lives and does not let go.
  bool Lock(ThreadContext& thread) TRY_ACQUIRE(true, z_->lock);
  // With endless patience.
  void Lock(ThreadOwner owner) ACQUIRE(z_->lock);
  // `pages`: how many pages moved under this hold, for the maximum.
  void Unlock(uint64_t pages) RELEASE(z_->lock);

  // Fills `chunk` with up to `want` blocks (64 at most with those it has),
  // lowest address on top, and marks them cached in it. Uses fragments before
  // it splits larger blocks.
  // Returns: blocks added; fewer when the zone has no more.
  uint32_t FillChunkLocked(uint32_t chunk, int order, PageType type,
                           uint32_t want) REQUIRES(z_->lock);
  // Frees the `blocks` topmost blocks of a chunk in a thread's hands.
  void FreeFromChunkLocked(uint32_t chunk, int order, uint32_t blocks)
      REQUIRES(z_->lock);
  // Frees what words say is in a chunk, whatever its count says: that of a
  // thread that died. Returns: pages.
  uint64_t FreeAllOfChunkLocked(uint32_t chunk) REQUIRES(z_->lock);

  // One block for `owner`, straight from the free areas; kNil when there is
  // none.
  Pfn TakeBlockLocked(int order, PageType type, ProcessOwner owner)
      REQUIRES(z_->lock);
  // Returns a block if its word still is `word`. Returns: whether it was.
  bool GiveBlockLocked(Pfn pfn, PageWord word) REQUIRES(z_->lock);

  // Hands section `section` (pool number) to the zone. Its frames exist.
  void OnlineSectionLocked(uint32_t section) REQUIRES(z_->lock);

  // Whether 2^order pages may be taken and leave free pages above `mark`,
  // and, but for the last attempt, a block of that order is in sight. A
  // glance without the lock.
  bool Above(int order, Mark mark) const;
  uint64_t FreePages() const { return LoadRelaxed(z_->free_pages); }
  // Largest order with a free block, -1 when there is none.
  int LargestFreeOrder() const;
  // Free blocks of an order, both types, pristine sections included.
  uint64_t FreeBlocks(int order) const;

  // Zone conditions (ZoneShared::control flags).
  void SetFlag(uint32_t flag);
  void ClearFlag(uint32_t flag);

  // Publishes limits and watermarks, and starts a new sequence, so that every
  // pageset sees them on its next take or give.
  // REQUIRES: the tuning lock.
  void PublishLimits(const PagesetLimits& limits);
  void PublishWatermarks(const Watermarks& marks);
  PagesetLimits LimitsNow() const;
  Watermarks WatermarksNow() const;

 private:
  PageType BlockType(Pfn pfn) const;
  // REQUIRES: a page of the pool.
  bool Owns(Pfn pfn) const {
    return mapping_->ZoneOfSection(pfn.value >> kSectionShift) == info_->number;
  }
  // Pages from `pfn` to the end of its page block, fewer at a section's end.
  uint32_t PagesOfPageblock(Pfn pfn) const;
  // Smallest order from `order` up with a free block of `type`, -1: none.
  int SmallestOrder(int order, PageType type) const;
  // Where the next block of `type` is to come from: makes one available if it
  // can (a pristine section, a page block of the other type).
  // Returns: false when the zone has nothing of this order.
  bool SourceLocked(int order, PageType type, PageType& source)
      REQUIRES(z_->lock);
  void CarveLocked(uint32_t section, PageType type) REQUIRES(z_->lock);
  bool ClaimFromOtherLocked(int order, PageType type) REQUIRES(z_->lock);
  void ConvertBlockLocked(Pfn head, PageType to) REQUIRES(z_->lock);
  // Writes the free blocks of a section that nobody used yet.
  void WriteFreeBlocksLocked(uint32_t section, PageType type)
      REQUIRES(z_->lock);
  // What an intent of these kinds asks for; done twice it does no harm.
  void EndCarveLocked(uint32_t section, PageType type) REQUIRES(z_->lock);
  void EndOnlineLocked(uint32_t section) REQUIRES(z_->lock);
  // A free block of exactly this order; kNil when there is none. Bits that are
  // wrong are cleared.
  Pfn FindLocked(PageType type, int order) REQUIRES(z_->lock);
  // Takes a free block of exactly `from_order` and splits it down to
  // `to_order`; its word still says free. Counts are not adjusted.
  Pfn DetachLocked(PageType type, int from_order, int to_order)
      REQUIRES(z_->lock);
  // The block's word says free: merges it upwards and lists it.
  void MergeLocked(Pfn pfn, int order, PageType type) REQUIRES(z_->lock);

  // Before the first store of a change, unless the same one is noted already.
  void OpenIntentLocked(IntentKind kind, uint32_t number,
                        PageType type = PageType::kOrdinary) REQUIRES(z_->lock);
  void OpenAreaLocked(Pfn pfn) REQUIRES(z_->lock) {
    OpenIntentLocked(IntentKind::kArea, pfn.value >> kMaxOrder);
  }
  void CloseIntentLocked() REQUIRES(z_->lock);
  // Ends the change a dead holder of the lock had under way.
  void RecoverLocked() REQUIRES(z_->lock);
  // Makes free areas and counts say what the words of an area say, and merges
  // what a death left unmerged.
  void RebuildAreaLocked(uint32_t area) REQUIRES(z_->lock);
  void AddFreeLocked(Pfn pfn, int64_t pages) REQUIRES(z_->lock);
  Shared32& AreaFree(uint32_t area) const {
    return mapping_->free_areas[area / SectionFreeAreas::kAreas]
        .area_free[area % SectionFreeAreas::kAreas];
  }

  const Mapping* mapping_;
  const ZoneInfo* info_;
  ZoneShared* z_;
  FreeAreas areas_;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_ZONE_H_
