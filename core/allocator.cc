// SPDX-License-Identifier: Apache-2.0
#include "core/allocator.h"

#include "core/allocator_fast.h"
#include "core/mm/pageset.h"
#include "core/recalculate.h"
#include "core/slot_table.h"

namespace memtuned {

Allocator::Allocator(Segment& segment, ProcessOwner owner)
    : segment_(segment),
      mapping_(segment.mapping()),
      owner_(owner),
      slot_(mapping_.processes[ProcessSlotOf(owner) % mapping_.nr_processes]),
      sections_(mapping_.SectionsOf(owner)),
      threads_(segment, owner) {}

Allocator::~Allocator() = default;

Pfn Allocator::Allocate(int order, PageType type) noexcept {
  const uint64_t page =
      TakeCached</*kCharged=*/false, /*kFlags=*/true>(order, type);
  return MEMTUNED_LIKELY(page != kNoPage) ? Pfn{static_cast<uint32_t>(page)}
                                          : AllocateSlow(order, type);
}

__attribute__((noinline)) Pfn Allocator::AllocateSlow(int order,
                                                      PageType type) noexcept {
  if (order < 0 || order > kMaxOrder) {
    Fail(FailureReason::kInvalidOrder);
    return Pfn{kNil};
  }
  if (detached()) {
    Fail(FailureReason::kNotAttached);
    return Pfn{kNil};
  }
  if (limited()) return AllocateLimited(order, type);
  threads_.Refresh();
  ThreadContext& thread = threads_.Current();
  const Pfn pfn = AllocateFromZones(order, type, thread);
  if (pfn.value != kNil) {
    NoteTaken(order, thread.slot);
    LookAtPeak(order, thread.slot);
  }
  return pfn;
}

Pfn Allocator::AllocateFromZones(int order, PageType type,
                                 ThreadContext& thread) noexcept {
  thread.patience.RenewBriefly();
  for (;;) {
    const MemsCookie cookie = ReadMemsAllowedBegin(slot_.mems);
    const MemsCopy& copy = CopyOf(slot_.mems, cookie);
    Pfn pfn = TryZones(order, type, thread, copy, /*min_mark=*/false);
    if (pfn.value == kNil && AddSection(copy, thread)) {
      pfn = TryZones(order, type, thread, copy, /*min_mark=*/false);
    }
    if (pfn.value == kNil) {
      pfn = TryZones(order, type, thread, copy, /*min_mark=*/true);
    }
    for (bool fetched = true; pfn.value == kNil && fetched;) {
      fetched = FetchHeld(copy, thread);
      // Also when nothing was left to fetch: others that fetched first may
      // have brought more into the zone than they needed.
      pfn = TryZones(order, type, thread, copy, /*min_mark=*/true);
    }
    if (pfn.value == kNil && thread.patience.left_ns == 0) {
      thread.patience.Extend();
      pfn = TryZones(order, type, thread, copy, /*min_mark=*/true);
    }
    if (pfn.value != kNil) return pfn;
#ifndef MEMTUNED_NO_MEMS_RETRY  // only a test leaves the retry out
    if (ReadMemsAllowedRetry(slot_.mems, cookie)) {
      AtomicBump(segment_.header().mems_allowed_retries);
      continue;
    }
#endif
    Fail(thread.patience.left_ns == 0 ? FailureReason::kBusy
                                      : FailureReason::kNoMemory);
    return Pfn{kNil};
  }
}

void Allocator::Fail(FailureReason why) noexcept {
  if (segment_.read_only()) return;
  AtomicBump(segment_.header().failures[static_cast<size_t>(why)]);
}

// Node whose zonelist is walked.
uint32_t Allocator::ZonelistStart(const MemsCopy& copy, const CpuEntry& cpu,
                                  ThreadContext& thread) noexcept {
  const uint32_t home = mapping_.zones[LoadRelaxed(cpu.zone)].node_index;
  const auto policy = static_cast<MemoryPolicy>(LoadRelaxed(copy.policy));
  if (policy == MemoryPolicy::kPreferred) {
    const uint32_t node = LoadRelaxed(copy.preferred);
    for (uint32_t i = 0; i < mapping_.nr_nodes; ++i) {
      if (segment_.nodes()[i].os_index == node) return i;
    }
  }
  if (policy == MemoryPolicy::kInterleave) {
    const uint32_t start =
        thread.slot != nullptr ? thread.interleave_next : home;
    for (uint32_t i = 1; i <= mapping_.nr_nodes; ++i) {
      const uint32_t index = (start + i) % mapping_.nr_nodes;
      const NodeShared& node = segment_.nodes()[index];
      if (node.zone == kNil || !Allows(copy, node.os_index) ||
          !PolicyNames(copy, node.os_index)) {
        continue;
      }
      if (thread.slot != nullptr) thread.interleave_next = index;
      return index;
    }
  }
  return home;
}

Pfn Allocator::TryZones(int order, PageType type, ThreadContext& thread,
                        const MemsCopy& copy, bool min_mark) noexcept {
  const uint32_t number = env::CurrentCpu();
  const CpuEntry& cpu = mapping_.cpu_table[number > kMaxCpuNumber ? 0 : number];
  const uint32_t start = ZonelistStart(copy, cpu, thread);
  const uint16_t* list = segment_.ZonelistOf(start);
  const bool interleaved =
      static_cast<MemoryPolicy>(LoadRelaxed(copy.policy)) ==
      MemoryPolicy::kInterleave;
  Zone* preferred = nullptr;
  for (uint32_t i = 0; i < mapping_.nr_zones; ++i) {
    Zone& zone = segment_.zone(list[i]);
    if (!Allows(copy, zone.node())) continue;
    if (zone.shared().kind == ZoneKind::kMovable &&
        type != PageType::kPurgeable) {
      continue;
    }
    if (preferred == nullptr) preferred = &zone;
    const ZoneShared& z = zone.shared();
    const Mark mark(LoadRelaxed(min_mark ? z.watermark_min : z.watermark_low) +
                        LoadRelaxed(z.watermark_boost),
                    /*is_last_attempt=*/min_mark);
    const Pfn pfn = TakeFromZone(zone, number, order, type, mark, thread);
    if (pfn.value == kNil) continue;
    CountNuma(zone, *preferred, cpu, interleaved, order);
    return pfn;
  }
  return Pfn{kNil};
}

Pfn Allocator::TakeFromZone(Zone& zone, uint32_t number, int order,
                            PageType type, Mark mark,
                            ThreadContext& thread) noexcept {
  const uint32_t cpu =
      LoadRelaxed(mapping_.cpu_table[number > kMaxCpuNumber ? 0 : number].cpu);
  PagesetShared& shared =
      mapping_.pagesets[size_t{zone.shared().number} * mapping_.nr_cpus + cpu];
  Pageset pageset(mapping_, zone, shared, thread,
                  mapping_.SeatOf(number, thread));
  Pfn pfn{kNil};
  uint32_t taken = 0;
  switch (pageset.TakeBlocks(order, type, mark, &pfn, 1, &taken)) {
    case Pageset::Take::kTaken:
      return pfn;
    case Pageset::Take::kMissed:
    case Pageset::Take::kNotCached:
      return TakeDirect(zone, shared, order, type, mark, thread);
    case Pageset::Take::kBelowMark:
    case Pageset::Take::kEmpty:
      break;
  }
  return Pfn{kNil};
}

Pfn Allocator::TakeDirect(Zone& zone, PagesetShared& pageset, int order,
                          PageType type, Mark mark,
                          ThreadContext& thread) noexcept {
  if (!zone.Above(order, mark)) return Pfn{kNil};
  if (!zone.Lock(thread)) return Pfn{kNil};
  const Pfn pfn = zone.TakeBlockLocked(order, type, thread.process);
  zone.Unlock(pfn.value == kNil ? 0 : uint64_t{1} << order);
  if (pfn.value != kNil) {
    Store(mapping_.page(pfn).next, thread.owner);
    AtomicBump(pageset.direct_allocations[static_cast<size_t>(order)]);
  }
  return pfn;
}

void Allocator::CountNuma(Zone& taken, Zone& preferred, const CpuEntry& cpu,
                          bool interleaved, int order) noexcept {
  const uint64_t pages = uint64_t{1} << order;
  const uint32_t number = LoadRelaxed(cpu.cpu);
  const auto of = [&](Zone& zone) -> PagesetShared& {
    return mapping_
        .pagesets[size_t{zone.shared().number} * mapping_.nr_cpus + number];
  };
  if (taken.node() != preferred.node()) {
    AtomicBump(of(taken).numa_miss, pages);
    AtomicBump(of(preferred).numa_foreign, pages);
  } else if (interleaved) {
    AtomicBump(of(taken).numa_interleave, pages);
  }
  if (taken.node() != LoadRelaxed(cpu.node)) {
    AtomicBump(of(taken).numa_other, pages);
  }
}

bool Allocator::AddSection(const MemsCopy& copy,
                           ThreadContext& thread) noexcept {
  for (Zone& zone : segment_.zones()) {
    const ZoneShared& z = zone.shared();
    if (!Allows(copy, zone.node())) continue;
    if (LoadRelaxed(z.managed_pages) < z.present_pages) {
      const auto added = segment_.InitialiseNextSection(z.number, thread.owner);
      if (added.ok() && *added) return true;
    }
  }
  return false;
}

bool Allocator::FetchHeld(const MemsCopy& copy,
                          ThreadContext& thread) noexcept {
  bool more = false;
  if (thread.slot == nullptr) return false;
  for (Zone& zone : segment_.zones()) {
    if (!Allows(copy, zone.node())) continue;
    more |= Pageset::DrainDepot(mapping_, zone, thread) != 0;
    for (uint32_t w = 0; w <= (mapping_.nr_cpus - 1) / 64; ++w) {
      uint64_t used = LoadRelaxed(zone.shared().used_cpus[w]);
      for (; used != 0; used &= used - 1) {
        const auto cpu = w * 64 + static_cast<uint32_t>(__builtin_ctzll(used));
        PagesetShared* shared = mapping_.PagesetOf(zone.info().number, cpu);
        if (shared == nullptr) continue;
        more |= Pageset(mapping_, zone, *shared, thread).Drain() != 0;
      }
    }
  }
  return more;
}

size_t Allocator::AllocateBulk(int order, std::span<Pfn> out) noexcept {
  size_t filled = 0;
  if (!detached() && OrderSlot(order) >= 0) {
    ThreadContext& thread = threads_.Current();
    thread.patience.RenewBriefly();
    const uint32_t number = env::CurrentCpu();
    const CpuEntry& cpu =
        mapping_.cpu_table[number > kMaxCpuNumber ? 0 : number];
    Zone& zone = segment_.zone(LoadRelaxed(cpu.zone));
    const MemsCopy& copy = CopyOf(slot_.mems, ReadMemsAllowedBegin(slot_.mems));
    if (LoadRelaxed(copy.policy) == 0 && Allows(copy, zone.node())) {
      const bool charged = limited();
      const size_t may =
          charged ? Charge(order, out.size(), thread) : out.size();
      PagesetShared& shared = mapping_.pagesets[LoadRelaxed(cpu.pageset)];
      uint32_t taken = 0;
      Pageset(mapping_, zone, shared, thread, mapping_.SeatOf(number, thread))
          .TakeBlocks(order, PageType::kOrdinary,
                      LoadRelaxed(zone.shared().watermark_low), out.data(),
                      static_cast<uint32_t>(may), &taken);
      if (charged) Uncharge(order, may - taken, thread.slot);
      for (; filled < taken; ++filled) {
        if (!charged) NoteTaken(order, thread.slot);
      }
      LookAtPeak(order, thread.slot);
    }
  }
  for (; filled < out.size(); ++filled) {
    out[filled] = Allocate(order);
    if (out[filled].value == kNil) break;
  }
  return filled;
}

}  // namespace memtuned
