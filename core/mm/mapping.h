// SPDX-License-Identifier: Apache-2.0
// Where the parts of a segment lie in this process: plain pointers, computed
// once from the header's sizes (core/segment.cc). The structs of the parts
// that have no header of their own are here too. Floor 1.
#ifndef MEMTUNED_CORE_MM_MAPPING_H_
#define MEMTUNED_CORE_MM_MAPPING_H_

#include <array>
#include <cstdint>

#include "core/base/biased_lock.h"
#include "core/base/pfn.h"
#include "core/base/shm.h"
#include "core/base/shm_lock.h"
#include "core/base/topology.h"
#include "core/mm/chunk.h"
#include "core/mm/page.h"
#include "core/mm/pageset_policy.h"
#include "core/mm/section.h"
#include "core/mm/slots.h"

namespace memtuned {

enum class ZoneKind : uint32_t { kNormal = 0, kMovable = 1 };
const char* ZoneKindName(ZoneKind kind);

// A change of a zone that is under way, and what it started from. `what` is
// stored last and cleared first; whoever takes the zone lock over from a dead
// holder ends the change, from the memmap's words and from here (Zone::
// RecoverLocked). Everything in it can be done twice.
struct ZoneIntent {
  // IntentKind << 30 | type << 29 | number, kNil: none.
  Shared32 what;
  Shared32 area_free;      // kArea: free pages of that area
  Shared64 free_pages;     // of the zone
  Shared64 managed_pages;  // of the zone
  Shared64 nr_pristine;    // of the zone
  Shared64 bit;            // the last bit of the free areas set or cleared
};
enum class IntentKind : uint32_t {
  kArea = 0,    // blocks of one area of 1,024 pages
  kCarve = 1,   // a pristine section gets its memmap
  kOnline = 2,  // a section is handed to the zone
};

// Bits of ZoneShared::control below the sequence.
inline constexpr uint32_t kZoneReclaimActive = 1;
inline constexpr uint32_t kZoneBelowHigh = 2;
inline constexpr uint32_t kZoneFlags = 3;
inline constexpr uint32_t kZoneSequenceStep = 4;

// What never changes about a zone after creation. Each process keeps a copy
// that was checked when it mapped the segment.
struct ZoneInfo {
  uint32_t number, node, node_index;
  ZoneKind kind;
  uint32_t first_section, nr_sections;
  uint64_t present_pages;
  uint64_t map_start;  // first word in Mapping::section_maps
  uint32_t map_words;  // words of one section map, tops excluded
  uint32_t reserved;
};

// Why a zone or pool is degraded: what was found in it is nothing that the core
// writes, so some process wrote where it should not.
enum class Degraded : uint32_t {
  kNo = 0,
  kFreeArea,  // a free area lists what is not free
  kChunk,     // a chunk lists what is not in it
  kBlock,     // a word describes no block
  kIntent,    // the note of a change makes no sense
  kCounts,    // more free pages than managed, or managed than present
  kTunable,   // a tunable is out of its range
  kChunks,    // a stack or deque of chunks does not end
  kCount,
};
const char* DegradedReason(Degraded reason);

// One zone's state. The lock and everything in its block is written under the
// lock; published limits are written under the tuning lock and read by
// anybody, each field once per operation.
struct ZoneShared {
  // Constant after creation: ZoneInfo.
  uint32_t number, node, node_index;
  ZoneKind kind;
  uint32_t first_section, nr_sections;
  uint64_t present_pages;
  uint64_t map_start;
  uint32_t map_words;

  // Published. `control` is sequence | flags: one comparison tells a pageset
  // that its copy of the limits is current and no zone condition is on.
  alignas(64) Shared32 control;
  Shared32 policy, batch, high_min, high_max, free_high_threshold, scale_max;
  Shared32 chunked_flush;
  Shared64 depot_max_pages;
  Shared64 watermark_min, watermark_low, watermark_high, watermark_promo;
  Shared64 watermark_boost;

  alignas(64) ShmLock<LockRank::kZone> lock;
  Shared32 degraded;  // Degraded
  ZoneIntent intent;
  Shared64 free_pages;     // blocks and pristine sections
  Shared64 managed_pages;  // grows with each section initialised
  LockCounters lock_counters;
  Shared64 hold_pages_max;
  std::array<std::array<Shared64, kNumOrders>, kNumPageTypes> free_blocks;
  Shared32 nr_pristine;  // pristine sections

  // Depot: full chunks between pagesets and free areas, outside the lock.
  alignas(64) std::array<ChunkStack, kNumLists> depot;
  Shared64 depot_pushes, depot_pops;

  // CPUs whose pageset of this zone was ever used.
  std::array<Shared64, (kMaxCpuNumber + 1) / 64> used_cpus;

  void Degrade(Degraded reason) {
    if (LoadRelaxed(degraded) == 0) {
      Store(degraded, static_cast<uint32_t>(reason));
    }
  }
  ZoneInfo Info() const {
    return {number,      node,          node_index, kind,      first_section,
            nr_sections, present_pages, map_start,  map_words, 0};
  }
  uint64_t DepotPages() const {
    uint64_t pages = 0;
    for (const ChunkStack& stack : depot) pages += stack.PagesNow();
    return pages;
  }
};

// Counters a pageset's holder writes; see core/stats.h for their meaning.
inline constexpr int kNumFlushCauses = 4;
inline constexpr int kNumNumaEvents = 6;

struct PagesetList {
  Shared32 spare;      // a second chunk, full or not, or kNoChunk
  Shared32 hot, cold;  // deque of further chunks, or kNoChunk
  Shared32 nr_deque;
};

// One CPU's pageset of one zone. All zero: empty, never used.
struct alignas(64) PagesetShared {
  BiasedLock<LockRank::kPageset> guard;  // biased to this CPU
  Shared32 pages;                        // held, all lists; written under guard
  Shared32 high;  // floating, clamped lazily; written under guard
  // Under guard: policy state, and a copy of the limits as of `seen`.
  uint32_t free_count;
  uint32_t seen;  // ZoneShared::control when the copy was made, no flags
  uint32_t batch;
  uint32_t free_high_threshold;
  uint32_t free_count_cap;
  uint8_t alloc_factor;
  bool previous_free_was_high_order;
  bool large_cache;
  bool consecutive_only;
  uint8_t policy;
  uint8_t reserved[3];
  // The loaded chunk of each list and its count in one word: count | chunk
  // << 32; kNoChunk with count 0 when there is none. Under guard.
  std::array<Shared64, kNumLists> top;
  // Operations by order slot. Under guard.
  std::array<Shared64, kNumOrderSlots> allocations;
  std::array<Shared64, kNumOrderSlots> frees;

  alignas(64) std::array<PagesetList, kNumLists> lists;
  Shared64 refills, refilled_pages;
  std::array<Shared64, kNumFlushCauses> flushes, flushed_pages;
  // Written without the guard, by whoever runs on the CPU.
  Shared64 trylock_misses;
  std::array<Shared64, kNumOrders> direct_allocations, direct_frees;
  // Allocations from this zone: hit and local are derived (allocations minus
  // miss, minus other); foreign is counted on the zone that was preferred.
  Shared64 numa_miss, numa_foreign, numa_other, numa_interleave;
};

constexpr uint64_t TopWord(uint32_t chunk, uint32_t count) {
  return count | static_cast<uint64_t>(chunk) << 32;
}
constexpr uint32_t TopChunk(uint64_t top) {
  return static_cast<uint32_t>(top >> 32);
}
constexpr uint32_t TopCount(uint64_t top) { return static_cast<uint32_t>(top); }
// Whether there is a loaded chunk and it has room for a block.
constexpr bool TopHasRoom(uint64_t top) {
  return MEMTUNED_LIKELY(TopChunk(top) != kNoChunk) &&
         MEMTUNED_LIKELY(TopCount(top) < kChunkBlocks);
}
inline constexpr uint64_t kNoTop = TopWord(kNoChunk, 0);

// What CPU number N of this machine is in the pool's topology. On a simulated
// topology live CPUs are spread over its nodes' CPUs.
struct CpuEntry {
  Shared32 cpu;                  // number in the pool, below nr_cpus
  Shared32 node;                 // os index of its home node, which has memory
  Shared32 zone;                 // that node's first zone for ordinary pages
  Shared32 pageset;              // that zone's pageset of this CPU
  Shared32 first_pfn, nr_pages;  // of that zone
  // 1: guards of these pagesets are biased to this CPU, 0: to another one that
  // plays the same CPU of the pool.
  Shared32 has_seat;
  uint32_t reserved;
};

// Per-process pointers and sizes. Copied freely. Sizes and zone_info were
// checked; all else that is read from the segment may be anything, as any
// attached process can write it.
struct Mapping {
  char* base = nullptr;
  ZoneShared* zones = nullptr;
  PagesetShared* pagesets = nullptr;  // zone-major: zone * nr_cpus + cpu
  Chunk* chunks = nullptr;
  ChunkStack* empty_chunks = nullptr;  // kNumEmptyStacks
  ProcessSlot* processes = nullptr;
  ThreadSlot* threads = nullptr;
  LifePage* lives = nullptr;           // one a thread slot
  Shared64* lock_takeovers = nullptr;  // by LockKind
  DaemonIdentity* daemon = nullptr;
  Shared64* process_sections = nullptr;  // words_of_sections a process
  Section* sections = nullptr;
  SectionFreeAreas* free_areas = nullptr;  // one a section
  Shared64* section_maps = nullptr;        // see ZoneMaps
  Page* memmap = nullptr;
  CpuEntry* cpu_table = nullptr;  // kMaxCpuNumber + 1 entries
  Shared64* online_cpus = nullptr;
  uint16_t* zonelists = nullptr;  // nr_zones numbers a node
  uint32_t nr_zones = 0, nr_nodes = 0, nr_cpus = 0, nr_chunks = 0;
  uint32_t nr_sections = 0, nr_pages = 0;
  uint32_t nr_processes = 0, nr_threads = 0;
  const ZoneInfo* zone_info = nullptr;        // nr_zones, of this process
  const uint16_t* zone_of_section = nullptr;  // nr_sections, of this process
  // A CPU's share of the last-level cache; large_cache compares it.
  uint64_t llc_pages_per_cpu = 0;
  GuardKind guard = GuardKind::kClosed;

  uint32_t words_of_sections() const { return (nr_sections + 63) / 64; }
  Page& page(Pfn pfn) const { return memmap[pfn.value]; }
  // REQUIRES: section below nr_sections.
  uint32_t ZoneOfSection(uint32_t section) const {
    return zone_of_section[section];
  }
  uint32_t PagesOfSection(uint32_t section) const {
    const ZoneInfo& zone = zone_info[ZoneOfSection(section)];
    const uint64_t before = uint64_t{section - zone.first_section}
                            << kSectionShift;
    const uint64_t left = zone.present_pages - before;
    return left < kPagesPerSection ? static_cast<uint32_t>(left)
                                   : kPagesPerSection;
  }
  // Whether 2^order pages from pfn can be a block: aligned, and inside of one
  // section. False for any number that is no page.
  bool IsBlock(Pfn pfn, int order) const {
    const uint32_t size = 1u << order;
    return pfn.value < nr_pages && static_cast<unsigned>(order) <= kMaxOrder &&
           (pfn.value & (size - 1)) == 0 &&
           (pfn.value & (kPagesPerSection - 1)) + size <=
               PagesOfSection(pfn.value >> kSectionShift);
  }
  // Bounds-checked: for numbers that come out of the segment.
  PagesetShared* PagesetOf(uint32_t zone, uint32_t cpu) const {
    return zone < nr_zones && cpu < nr_cpus
               ? &pagesets[size_t{zone} * nr_cpus + cpu]
               : nullptr;
  }
  // Where a thread on CPU `number` of this machine sits: it can take guards of
  // pagesets of cpu_table[number] only.
  GuardSeat SeatOf(uint32_t number) const {
    const bool sits = guard == GuardKind::kBiased && number <= kMaxCpuNumber &&
                      LoadRelaxed(cpu_table[number].has_seat) != 0;
    return {guard, sits ? number : env::kNowhere,
            env::CpuGlance::OfThisThread()};
  }
  GuardSeat SeatOf(uint32_t number, const ThreadContext& thread) const {
    // What a thread without a slot has in hand could not be found.
    return thread.slot != nullptr ? SeatOf(number) : GuardSeat{};
  }
  // The bits of the sections that are flagged for a process.
  Shared64* SectionsOf(ProcessOwner process) const {
    return &process_sections[size_t{ProcessSlotOf(process) % nr_processes} *
                             words_of_sections()];
  }
  // Reaping walks only sections flagged here: before a block is taken.
  void FlagSection(ProcessOwner process, Pfn pfn) const {
    const uint32_t section = pfn.value >> kSectionShift;
    Shared64& word = SectionsOf(process)[section / 64];
    const uint64_t bit = 1ull << (section % 64);
    if (MEMTUNED_UNLIKELY((LoadRelaxed(word) & bit) == 0)) word.fetch_or(bit);
  }
  uint32_t NumberOf(const PagesetShared& pageset) const {
    return static_cast<uint32_t>(&pageset - pagesets);
  }
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_MAPPING_H_
