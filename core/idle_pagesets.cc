// SPDX-License-Identifier: Apache-2.0
#include "core/idle_pagesets.h"

#include "core/mm/pageset.h"

namespace memtuned {
namespace {

uint64_t OperationsOn(const PagesetShared& pageset) {
  uint64_t operations = 0;
  for (size_t i = 0; i < kNumOrderSlots; ++i) {
    operations += LoadRelaxed(pageset.allocations[i]);
    operations += LoadRelaxed(pageset.frees[i]);
  }
  return operations;
}

}  // namespace

IdlePagesets::IdlePagesets(Segment* segment)
    : segment_(segment),
      seen_(size_t{segment->mapping().nr_zones} * segment->mapping().nr_cpus),
      cpus_nodes_(segment->mapping().nr_cpus, kNil) {
  const Mapping& m = segment_->mapping();
  for (uint32_t number = 0; number <= kMaxCpuNumber; ++number) {
    const CpuEntry& entry = m.cpu_table[number];
    const uint32_t cpu = LoadRelaxed(entry.cpu);
    if (cpu < m.nr_cpus) cpus_nodes_[cpu] = LoadRelaxed(entry.node);
  }
}

bool IdlePagesets::IsAway(uint32_t zone, uint32_t cpu) const {
  const Mapping& m = segment_->mapping();
  const bool online =
      (LoadRelaxed(m.online_cpus[cpu / 64]) >> (cpu % 64) & 1) != 0;
  return !online || cpus_nodes_[cpu] != m.zone_info[zone].node;
}

IdlePagesets::Taken IdlePagesets::Tick(ThreadContext& thread) {
  const Mapping& m = segment_->mapping();
  Taken taken;
  for (uint32_t number = 0; number < m.nr_zones; ++number) {
    Zone& zone = segment_->zone(number);
    for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
      const uint64_t used = LoadRelaxed(zone.shared().used_cpus[cpu / 64]);
      if ((used >> (cpu % 64) & 1) == 0) continue;
      PagesetShared& shared = *m.PagesetOf(number, cpu);
      Seen& seen = seen_[size_t{number} * m.nr_cpus + cpu];
      const uint64_t operations = OperationsOn(shared);
      seen.quiet_ticks =
          operations == seen.operations ? seen.quiet_ticks + 1 : 0;
      seen.operations = operations;
      Pageset pageset(m, zone, shared, thread);
      thread.patience.Renew();
      if (seen.quiet_ticks >= kQuietTicks && IsAway(number, cpu)) {
        taken.drained_pages += pageset.Drain();
      } else {
        taken.decayed_pages += pageset.Decay();
      }
    }
  }
  return taken;
}

}  // namespace memtuned
