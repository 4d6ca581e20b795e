// SPDX-License-Identifier: Apache-2.0
#include "core/recalculate.h"

#include <algorithm>
#include <bit>

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
    const ZoneShared& z = m.zones[i];
    const bool movable = z.kind == ZoneKind::kMovable;
    zones.push_back({LoadRelaxed(z.managed_pages), movable});
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
    in.cpus = EffectiveCpus(static_cast<int>(LoadRelaxed(
                                segment.nodes()[z.node_index].online_cpus)),
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
  if (limits) {
    AtomicBump(segment.header().recalculations[static_cast<size_t>(trigger)]);
  }
}

void Recalculate(Segment& segment, RecalculateTrigger trigger,
                 ThreadOwner owner) {
  segment.header().tuning_lock.Lock(owner);
  RecalculateLocked(segment, trigger);
  segment.header().tuning_lock.Unlock();
}

}  // namespace memtuned
