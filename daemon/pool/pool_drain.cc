// SPDX-License-Identifier: Apache-2.0
// PoolSubject::Drain: pagesets and depots back to their zones.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/mm/pageset.h"
#include "core/recalculate.h"
#include "daemon/pool/pool_subject.h"

namespace memtuned {

void PoolSubject::DrainZoneLocked(uint32_t number, const Scope& scope,
                                  bool validate_only, ZoneDrain* out) {
  const Mapping& m = segment_->mapping();
  Zone& zone = segment_->zone(number);
  ZoneShared& z = zone.shared();
  thread_.patience.Renew();
  out->node = static_cast<int>(zone.node());
  out->zone = ZoneKindName(zone.info().kind);
  out->largest_free_order_before = zone.LargestFreeOrder();
  const auto in_scope = [&scope](uint32_t cpu) {
    return scope.cpus.empty() ||
           std::count(scope.cpus.begin(), scope.cpus.end(),
                      static_cast<int>(cpu)) != 0;
  };
  for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
    const uint64_t used = LoadRelaxed(z.used_cpus[cpu / 64]);
    if ((used >> (cpu % 64) & 1) == 0 || !in_scope(cpu)) continue;
    PagesetShared& shared = *m.PagesetOf(number, cpu);
    const int64_t before = LoadRelaxed(shared.pages);
    out->pages_before += before;
    if (validate_only) {
      out->pages_after += before;
      continue;
    }
    const auto drained =
        static_cast<int64_t>(Pageset(m, zone, shared, thread_).Drain());
    if (drained != 0) out->by_cpu.emplace_back(static_cast<int>(cpu), drained);
    out->pages_after += LoadRelaxed(shared.pages);
  }
  if (scope.cpus.empty()) {
    out->pages_before += static_cast<int64_t>(z.DepotPages());
    if (!validate_only) Pageset::DrainDepot(m, zone, thread_);
    out->pages_after += static_cast<int64_t>(z.DepotPages());
  }
  out->largest_free_order_after = zone.LargestFreeOrder();
}

absl::StatusOr<DrainResult> PoolSubject::Drain(const Scope& scope,
                                               const ChangeContext& context) {
  auto zones = ZonesOf(scope);
  if (!zones.ok()) return zones.status();
  for (int cpu : scope.cpus) {
    if (cpu < 0 || static_cast<uint32_t>(cpu) >= segment_->mapping().nr_cpus) {
      return absl::InvalidArgumentError(
          absl::StrCat("scope.cpus: ", name_, " has no CPU ", cpu));
    }
  }
  MutexLock lock(mutex_);
  if (absl::Status s = CheckEtag(context.etag); !s.ok()) return s;
  DrainResult result;
  for (uint32_t number : *zones) {
    ZoneDrain zone;
    DrainZoneLocked(number, scope, context.validate_only, &zone);
    result.zones.push_back(std::move(zone));
  }
  if (!context.validate_only) {
    Segment& segment = *segment_;
    if (!LockTuning(segment, thread_.owner, RenewedPatience())) {
      return TuningBusy();
    }
    Bump(segment.header().generation);
    segment.header().tuning_lock.Unlock();
  }
  result.change = ResultLocked({}, {});
  return result;
}

}  // namespace memtuned
