// SPDX-License-Identifier: Apache-2.0
#include "core/online_cpus.h"

#include <algorithm>

#include "core/mm/pageset.h"
#include "core/recalculate.h"

namespace memtuned {
namespace {

bool IsOnline(const Mapping& m, uint32_t cpu) {
  return (LoadRelaxed(m.online_cpus[cpu / 64]) >> (cpu % 64) & 1) != 0;
}

}  // namespace

bool SetOnlineCpus(Segment& segment, const std::vector<int>& cpus,
                   ThreadContext& thread) {
  const Mapping& m = segment.mapping();
  std::vector<uint32_t> gone;
  bool changed = false;
  thread.patience.Renew();
  if (!LockTuning(segment, thread.owner, thread.patience)) return false;
  for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
    const bool online =
        std::binary_search(cpus.begin(), cpus.end(), static_cast<int>(cpu));
    if (online == IsOnline(m, cpu)) continue;
    Shared64& word = m.online_cpus[cpu / 64];
    Store(word, LoadRelaxed(word) ^ uint64_t{1} << (cpu % 64));
    changed = true;
    if (!online) gone.push_back(cpu);
  }
  if (changed) {
    CountOnlineCpusLocked(segment);
    RecalculateLocked(segment, RecalculateTrigger::kCpus);
  }
  segment.header().tuning_lock.Unlock();
  for (uint32_t cpu : gone) {
    for (Zone& zone : segment.zones()) {
      PagesetShared& pageset = *m.PagesetOf(zone.info().number, cpu);
      Pageset(m, zone, pageset, thread).Drain();
    }
  }
  return changed;
}

}  // namespace memtuned
