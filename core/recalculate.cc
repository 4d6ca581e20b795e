// SPDX-License-Identifier: Apache-2.0
#include "core/recalculate.h"

#include <algorithm>
#include <bit>

#include "core/mm/owners.h"
#include "core/process_mems.h"

namespace memtuned {

RecalculateInputs InputsWith(RecalculateInputs inputs, TunableId id,
                             const TunableValue& value) {
  const double* real = std::get_if<double>(&value);
  const int64_t* integer = std::get_if<int64_t>(&value);
  const std::string* text = std::get_if<std::string>(&value);
  switch (id) {
    case TunableId::kPagesetPolicy:
      if (text != nullptr) {
        inputs.policy = PolicyFromName(*text).value_or(inputs.policy);
      }
      break;
    case TunableId::kPagesetBatchFactor:
      if (real != nullptr) inputs.batch_factor = *real;
      break;
    case TunableId::kPagesetFreeHighFactor:
      if (real != nullptr) inputs.free_high_factor = *real;
      break;
    case TunableId::kPagesetHighFraction:
      if (integer != nullptr) {
        inputs.high_fraction = static_cast<uint32_t>(*integer);
      }
      break;
    case TunableId::kDepotHighFraction:
      if (integer != nullptr) {
        inputs.depot_high_fraction = static_cast<uint32_t>(*integer);
      }
      break;
    case TunableId::kWatermarkMinFreeKbytes:
      inputs.min_free_kbytes = integer != nullptr ? *integer : -1;
      break;
    case TunableId::kWatermarkScaleFactor:
      if (integer != nullptr) {
        inputs.scale_factor = static_cast<uint32_t>(*integer);
      }
      break;
    case TunableId::kInitSectionsPerSecond:
    case TunableId::kProcessMaxBytes:
    case TunableId::kCount:
      break;
  }
  return inputs;
}

RecalculateInputs InputsNow(const Segment& segment) {
  RecalculateInputs inputs;
  for (int i = 0; i < kNumTunables; ++i) {
    const auto id = static_cast<TunableId>(i);
    inputs = InputsWith(inputs, id, segment.Tunable(id));
  }
  return inputs;
}

std::vector<ZoneTargets> ComputeTargets(const Segment& segment,
                                        const RecalculateInputs& inputs) {
  const Mapping& m = segment.mapping();
  std::vector<WatermarkZone> zones;
  uint64_t lowmem_pages = 0;
  for (uint32_t i = 0; i < m.nr_zones; ++i) {
    const bool movable = m.zone_info[i].kind == ZoneKind::kMovable;
    zones.push_back({std::min(LoadRelaxed(m.zones[i].managed_pages),
                              m.zone_info[i].present_pages),
                     movable});
    if (!movable) lowmem_pages += zones.back().managed_pages;
  }
  const uint64_t min_free =
      inputs.min_free_kbytes >= 0
          ? static_cast<uint64_t>(inputs.min_free_kbytes)
          : DefaultMinFreeKbytes(lowmem_pages * kPageSizeBytes / 1024);
  const std::vector<Watermarks> marks =
      ComputeWatermarks(zones, min_free, inputs.scale_factor, kPageSizeBytes);
  int online = 0;
  for (uint32_t i = 0; i <= kMaxCpuNumber / 64; ++i) {
    online += std::popcount(LoadRelaxed(m.online_cpus[i]));
  }
  std::vector<ZoneTargets> targets;
  for (uint32_t i = 0; i < m.nr_zones; ++i) {
    const ZoneShared& z = m.zones[i];
    LimitInputs in;
    in.policy = inputs.policy;
    in.managed_pages = zones[i].managed_pages;
    in.watermark_low_pages = marks[i].low + LoadRelaxed(z.watermark_boost);
    in.cpus = EffectiveCpus(
        static_cast<int>(LoadRelaxed(
            segment.nodes()[m.zone_info[i].node_index].online_cpus)),
        online);
    in.high_fraction = inputs.high_fraction;
    in.batch_factor = inputs.batch_factor;
    in.free_high_factor = inputs.free_high_factor;
    targets.push_back({ComputeLimits(in), marks[i]});
  }
  return targets;
}

bool PolicyRecalculates(PagesetPolicy policy, RecalculateTrigger trigger) {
  switch (trigger) {
    case RecalculateTrigger::kCreated:
    case RecalculateTrigger::kInitialised:
    case RecalculateTrigger::kTunable:
    case RecalculateTrigger::kRequest:
      return true;
    case RecalculateTrigger::kSection:
      return policy == PagesetPolicy::kMemtuned;
    case RecalculateTrigger::kCpus:
    case RecalculateTrigger::kWatermark:
      return policy != PagesetPolicy::kFixed;
    case RecalculateTrigger::kCount:
      break;
  }
  return false;
}

void RecalculateLocked(Segment& segment, RecalculateTrigger trigger,
                       std::span<const uint32_t> zones) {
  const RecalculateInputs inputs = InputsNow(segment);
  const bool limits = PolicyRecalculates(inputs.policy, trigger);
  const bool watermarks = limits || trigger == RecalculateTrigger::kWatermark;
  if (!watermarks) return;
  const std::vector<ZoneTargets> targets = ComputeTargets(segment, inputs);
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto number = static_cast<uint32_t>(i);
    if (!zones.empty() &&
        std::find(zones.begin(), zones.end(), number) == zones.end()) {
      continue;
    }
    Zone& zone = segment.zone(number);
    ZoneShared& z = zone.shared();
    zone.PublishWatermarks(targets[i].watermarks);
    const uint64_t managed = LoadRelaxed(z.managed_pages);
    const bool depot = inputs.policy == PagesetPolicy::kMemtuned &&
                       inputs.depot_high_fraction != 0;
    Store(z.depot_max_pages,
          depot ? managed / inputs.depot_high_fraction : uint64_t{0});
    if (limits) zone.PublishLimits(targets[i].limits);
  }
  Store(segment.header().limits_managed_pages, segment.ManagedPages());
  if (limits) {
    AtomicBump(segment.header().recalculations[static_cast<size_t>(trigger)]);
  }
}

namespace {

// What the words of the change say is put in force; done twice it does no
// harm.
void EndTuningChangeLocked(SegmentHeader& header) {
  TuningChange& change = header.change;
  const uint32_t ids = LoadRelaxed(change.ids);
  const uint64_t generation = LoadRelaxed(change.generation);
  if (ids == 0) return;
  for (size_t id = 0; id < kNumTunables; ++id) {
    if ((ids >> id & 1) == 0) continue;
    Store(header.tunables[id], LoadRelaxed(change.values[id]));
    Store(header.tunable_generations[id], generation);
    Store(header.tunable_origins[id], LoadRelaxed(change.origin));
  }
  Store(header.generation, generation);
  Store(change.ids, 0u);
}

}  // namespace

bool LockTuning(Segment& segment, ThreadOwner owner, Patience& patience) {
  LockWait wait;
  SegmentHeader& header = segment.header();
  if (!segment.header().tuning_lock.LockWithin(
          owner, ProbeOf(segment.mapping()), patience, &wait)) {
    return false;
  }
  if (MEMTUNED_UNLIKELY(wait.taken_over)) {
    CountTakeover(segment.mapping(), LockKind::kTuning);
    EndTuningChangeLocked(header);
    CountOnlineCpusLocked(segment);
    RecalculateLocked(segment, RecalculateTrigger::kTunable);
    const Mapping& m = segment.mapping();
    for (uint32_t i = 0; i < m.nr_processes; ++i) {
      if (LoadRelaxed(m.processes[i].owner) == 0) continue;
      PublishMemsLocked(segment, m.processes[i]);
    }
  }
  return true;
}

void ChangeTunablesLocked(Segment& segment, std::span<const TunableWord> words,
                          uint32_t origin) {
  SegmentHeader& header = segment.header();
  TuningChange& change = header.change;
  uint32_t ids = 0;
  for (const TunableWord& word : words) {
    ids |= 1u << static_cast<uint32_t>(word.id);
    Store(change.values[static_cast<size_t>(word.id)], word.word);
  }
  Store(change.origin, origin);
  Store(change.generation, LoadRelaxed(header.generation) + 1);
  Store(change.ids, ids);
  EndTuningChangeLocked(header);
}

void CountOnlineCpusLocked(Segment& segment) {
  const Mapping& m = segment.mapping();
  std::vector<uint32_t> counts(m.nr_nodes, 0);
  for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
    if ((LoadRelaxed(m.online_cpus[cpu / 64]) >> (cpu % 64) & 1) == 0) continue;
    const uint32_t zone = LoadRelaxed(m.cpu_table[cpu].zone);
    if (zone < m.nr_zones) ++counts[m.zone_info[zone].node_index];
  }
  for (uint32_t i = 0; i < m.nr_nodes; ++i) {
    Store(segment.nodes()[i].online_cpus, counts[i]);
  }
}

bool LimitsOverdue(const Segment& segment) {
  return LoadRelaxed(segment.header().limits_managed_pages) !=
         segment.ManagedPages();
}

bool Recalculate(Segment& segment, RecalculateTrigger trigger,
                 ThreadOwner owner) {
  Patience patience;
  patience.Renew();
  if (!LockTuning(segment, owner, patience)) return false;
  RecalculateLocked(segment, trigger);
  segment.header().tuning_lock.Unlock();
  return true;
}

}  // namespace memtuned
