// SPDX-License-Identifier: Apache-2.0
// One CPU's stock of free pages of one zone, shared by all processes that run
// on that CPU. Lets most allocations skip the zone lock: take pops from the
// loaded chunk of the list, give pushes to it.
//
//   list = loaded chunk + spare chunk + deque of further chunks (coldest last)
//
// Invariants, while the guard is free: PagesetShared::pages is the number of
// pages in all its chunks; every block in them is marked cached in its chunk;
// each of its chunks says place kPageset with this pageset's number.
// Thread safety: under the guard, which is taken by trylock; a miss goes to
// the zone and never waits. Floor 1.
#ifndef MEMTUNED_CORE_MM_PAGESET_H_
#define MEMTUNED_CORE_MM_PAGESET_H_

#include <cstdint>
#include <span>

#include "core/mm/chunk_pool.h"
#include "core/mm/mapping.h"
#include "core/mm/pageset_policy.h"
#include "core/mm/zone.h"

namespace memtuned {

enum class FlushReason { kHigh = 0, kFreeHigh = 1, kDrain = 2, kDecay = 3 };

// The top block of a list.
struct TopBlock {
  uint64_t top;
  Pfn pfn;
};

// REQUIRES: TopCount(top) != 0.
inline TopBlock ReadTop(const Mapping& mapping, uint64_t top) {
  TopBlock block;
  block.top = top;
  const Chunk& chunk = mapping.chunks[TopChunk(top)];
  block.pfn = Pfn{LoadRelaxed(chunk.items[size_t{TopCount(top)} - 1])};
  return block;
}

// Pops the top block of a list and makes it the caller's; `state` is
// PageWord::State(kAllocated, 0, owner), `thread` the thread that takes it.
// REQUIRES: the guard, under which the block was read.
// Cost: three lines of memory; one store commits.
inline void PopTop(const Mapping& mapping, PagesetShared& pageset, int list,
                   int order, const TopBlock& block, uint64_t state,
                   ThreadOwner thread) REQUIRES(pageset.guard) {
  Page& page = mapping.page(block.pfn);
  page.next.store(thread, std::memory_order_relaxed);
  Store(page.word, PageWord(LoadRelaxed(page.word)).Taken(state).bits());
  Store(pageset.top[static_cast<unsigned>(list)], block.top - 1);
  Bump(pageset.pages, 0u - (1u << order));
}

// Pushes a block that its owner gives back. The compare and swap makes sure
// that of two threads that free the same block only one wins; kStore says
// that there is no second one (ProcessSlot::gave_others_blocks).
// REQUIRES: the guard; a loaded chunk with room; `word` is the block's word
// as it was checked. Counting it in pages and frees is up to the caller.
// Returns: false, and nothing changed, when the word moved meanwhile.
template <bool kStore>
inline bool PushTop(const Mapping& mapping, PagesetShared& pageset, int list,
                    uint64_t top, Pfn pfn, Page& page, PageWord word)
    REQUIRES(pageset.guard) {
  const auto l = static_cast<unsigned>(list);
  const uint32_t number = TopChunk(top);
  Store(mapping.chunks[number].items[TopCount(top)], pfn.value);
  // The array covers the block before its word says so.
  Store(pageset.top[l], top + 1);
  const PageWord given = word.Given(number);
  if constexpr (kStore) {
    Store(page.word, given.bits());
    return true;
  }
  uint64_t expected = word.bits();
  if (MEMTUNED_UNLIKELY(!Exchange(page.word, expected, given.bits()))) {
    Store(pageset.top[l], LoadRelaxed(pageset.top[l]) - 1);
    return false;
  }
  return true;
}

// A view of one pageset for one operation of one thread.
class Pageset {
 public:
  // `seat` is needed to take and give; draining works from anywhere.
  Pageset(const Mapping& mapping, Zone& zone, PagesetShared& shared,
          ThreadContext& thread, const GuardSeat& seat = {})
      : mapping_(&mapping),
        zone_(&zone),
        p_(&shared),
        thread_(&thread),
        seat_(seat),
        chunks_(mapping, thread) {}

  enum class Take {
    kTaken,
    kMissed,     // somebody else holds the guard
    kBelowMark,  // empty, and the zone is at its watermark
    kEmpty,      // empty, and the zone has nothing of this order
    kNotCached,  // this policy keeps no pageset for the order
  };
  // Takes up to `want` blocks (one if `bulk` is false), refilling from depot
  // and zone when empty.
  // Takes: the guard by trylock, then the zone lock on refill.
  // Returns: kTaken with *taken >= 1, or why not.
  Take TakeBlocks(int order, PageType type, Mark mark, Pfn* out, uint32_t want,
                  uint32_t* taken) EXCLUDES(p_->guard);

  enum class Give { kGiven, kMissed, kRefused, kNotCached, kNoChunk };
  // Takes a block of `owner` back. `word` is the page's word as the caller
  // read and checked it. kRefused: somebody changed it meanwhile.
  // Takes: the guard by trylock, then the zone lock on flush.
  Give GiveBlock(Pfn pfn, int order, PageWord word) EXCLUDES(p_->guard);

  // For callers that took the guard of the pageset this views.
  void AssertGuardHeld() ASSERT_CAPABILITY(p_->guard) {}

  // Second half of GiveBlock after the push: policy, flush. Out of line.
  void CommitFreeLocked(int list, int order) REQUIRES(p_->guard);

  // Returns everything to the zone, at most 64 blocks per hold. Waits for the
  // guard, as long as the thread's operation has patience.
  // Returns: pages given back; 0 where this process may take no guards.
  uint64_t Drain() EXCLUDES(p_->guard);

  // What a tick of the clock takes back from a pageset whose high floats
  // (DecayedHigh): lowers high, and gives what is above it to the zone, at
  // most 64 blocks per hold.
  // Returns, and waits, as Drain does; 0 at once, without the guard, when
  // there is nothing to take.
  uint64_t Decay() EXCLUDES(p_->guard);

  // If the guard is in the hands of a thread that died: takes it over, ends
  // what that one had under way, and lets go of it.
  // Returns: whether it did. Cost: two loads when the holder lives.
  bool Recover() EXCLUDES(p_->guard);

  // Empties the depot of the zone. Returns: pages given back.
  static uint64_t DrainDepot(const Mapping& mapping, Zone& zone,
                             ThreadContext& thread);

 private:
  void SyncLimitsLocked() REQUIRES(p_->guard);
  PolicyState StateLocked() const REQUIRES(p_->guard);
  void StoreStateLocked(const PolicyState& state) REQUIRES(p_->guard);
  ZoneConditions Conditions() const;
  void MarkUsed();
  // Up to `pages` of the coldest, to the zone. Returns: pages.
  uint64_t FlushColdLocked(uint64_t pages) REQUIRES(p_->guard);
  // Empties a list into the zone, at most 64 blocks per hold, and lets go of
  // its chunks. Returns: pages.
  uint64_t DrainListLocked(int list) REQUIRES(p_->guard);

  // Waits for the guard; from a dead holder it is recovered first.
  bool LockFromAnywhere() TRY_ACQUIRE(true, p_->guard);
  // Makes the pageset's places agree with its chunks' words, after a death.
  void EndChangesLocked() REQUIRES(p_->guard);
  uint32_t RecoverListLocked(int list) REQUIRES(p_->guard);
  uint32_t RecoverDequeLocked(int list) REQUIRES(p_->guard);
  void AdoptPendingLocked() REQUIRES(p_->guard);
  bool HasPlaceLocked(int list, uint32_t chunk) const REQUIRES(p_->guard);
  void AdoptLocked(int list, uint32_t chunk) REQUIRES(p_->guard);
  // Whether a chunk with this number says it is in that list here.
  bool SaysHere(uint32_t chunk, int list) const;
  bool IsChunk(uint32_t number) const {
    return number != kNoChunk && number < mapping_->nr_chunks;
  }

  // Makes the loaded chunk of `list` non-empty from spare or deque.
  bool RotateInLocked(int list) REQUIRES(p_->guard);
  bool LoadFromDepotLocked(int list) REQUIRES(p_->guard);
  // Returns: false when nothing came; *below: because of the watermark.
  bool RefillLocked(int list, Mark mark, bool* below) REQUIRES(p_->guard);
  uint32_t FillChunksLocked(int list, uint32_t blocks, bool one_hold)
      REQUIRES(p_->guard);
  uint32_t FillUnderOneHoldLocked(int list, uint32_t blocks)
      REQUIRES(p_->guard);
  uint32_t ChunkToFillLocked(int list) REQUIRES(p_->guard);
  // The loaded chunk, which is empty, becomes the spare one or goes.
  void RetireLoadedLocked(int list) REQUIRES(p_->guard);
  // Makes room for one block in the loaded chunk. False: no chunk left.
  bool MakeRoomLocked(int list) REQUIRES(p_->guard);

  // The coldest chunk of a list, taken out of it into this thread's hands
  // with its count in Chunk::count; kNoChunk when the list is empty.
  uint32_t DetachColdestLocked(int list) REQUIRES(p_->guard);
  // Puts a chunk of this thread in: as the loaded one if there is none, else
  // at the cold end if it has blocks.
  void PlaceColdLocked(int list, uint32_t chunk) REQUIRES(p_->guard);
  // Into this thread's hands.
  void TakeSpareLocked(int list) REQUIRES(p_->guard);
  uint32_t TakeLoadedLocked(int list, bool with_blocks) REQUIRES(p_->guard);
  void PushHotLocked(int list, uint32_t chunk) REQUIRES(p_->guard);
  void PushColdLocked(int list, uint32_t chunk) REQUIRES(p_->guard);
  // Picked up.
  uint32_t PopHotLocked(int list) REQUIRES(p_->guard);
  uint32_t PopColdLocked(int list) REQUIRES(p_->guard);
  bool ListEmptyLocked(int list) const REQUIRES(p_->guard);
  // Nothing in spare or deque.
  bool OnlyLoadedLocked(int list) const REQUIRES(p_->guard);
  void MarkPageset(int list, uint32_t chunk);

  void FlushLocked(int first_list, const FlushDecision& decision)
      REQUIRES(p_->guard);
  uint64_t FlushEraLocked(int first_list, uint32_t pages,
                          uint32_t pages_per_hold) REQUIRES(p_->guard);
  uint64_t FlushOursLocked(int first_list, const FlushDecision& decision)
      REQUIRES(p_->guard);
  // Frees up to `blocks` of the coldest chunk of a list under one hold that
  // the caller has (`locked`) or that is taken here. Returns: pages.
  uint64_t FlushColdestLocked(int list, uint32_t blocks)
      REQUIRES(p_->guard, zone_->lock());
  // Frees up to `quota` pages of a list, at most 64 blocks; `keep_loaded`
  // leaves the loaded chunk alone. Returns: pages, at least one block.
  uint64_t FlushUnderOneHoldLocked(int list, uint64_t quota, bool keep_loaded)
      REQUIRES(p_->guard);
  bool ParkColdestLocked(int list, uint64_t* pages) REQUIRES(p_->guard);
  // For a whole chunk of this list.
  bool DepotHasRoom(int list) const;
  void AddPages(int64_t pages) REQUIRES(p_->guard) {
    p_->pages.store(LoadRelaxed(p_->pages) + static_cast<uint32_t>(pages),
                    std::memory_order_relaxed);
  }

  const Mapping* mapping_;
  Zone* zone_;
  PagesetShared* p_;
  ThreadContext* thread_;
  GuardSeat seat_;
  ChunkPool chunks_;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_PAGESET_H_
