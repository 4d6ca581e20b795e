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
      : mapping_(&mapping), z_(&shared), areas_(mapping, shared) {}

  ZoneShared& shared() const { return *z_; }
  ShmLock<LockRank::kZone>& lock() const RETURN_CAPABILITY(z_->lock) {
    return z_->lock;
  }
  uint32_t node() const { return z_->node; }

  // Takes the zone lock and counts it.
  // Blocks: while another holds it; policy memtuned moves at most 64 blocks
  // under it.
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

  // One block for `owner`, straight from the free areas; kNil when there is
  // none.
  Pfn TakeBlockLocked(int order, PageType type, ProcessOwner owner)
      REQUIRES(z_->lock);
  // Returns a block whose word the caller knows to be its own.
  void GiveBlockLocked(Pfn pfn, int order) REQUIRES(z_->lock);

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
  // Takes a free block of exactly `from_order` and splits it down to
  // `to_order`; its word still says free. Counts are not adjusted.
  Pfn DetachLocked(PageType type, int from_order, int to_order)
      REQUIRES(z_->lock);
  void OpenIntentLocked(Pfn pfn) REQUIRES(z_->lock);
  void CloseIntentLocked() REQUIRES(z_->lock);
  void AddFreeLocked(Pfn pfn, int64_t pages) REQUIRES(z_->lock);

  const Mapping* mapping_;
  ZoneShared* z_;
  FreeAreas areas_;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_ZONE_H_
