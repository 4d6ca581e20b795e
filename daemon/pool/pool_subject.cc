// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/pool_subject.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/process_limit.h"
#include "core/snapshot.h"

namespace memtuned {
namespace {

double Seconds(std::chrono::duration<double> duration) {
  return duration.count();
}

const char* OriginName(uint32_t origin) {
  constexpr const char* kNames[] = {"default", "config", "change"};
  return origin < 3 ? kNames[origin] : "foreign";
}

}  // namespace

SubjectVersion PoolSubject::Version() const {
  SubjectVersion version;
  const SegmentHeader& header = segment_->header();
  version.generation = static_cast<int64_t>(LoadRelaxed(header.generation));
  // FNV-1a over the values: moves with any of them, whoever wrote it.
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int i = 0; i < kNumTunables; ++i) {
    const uint64_t word = LoadRelaxed(header.tunables[static_cast<size_t>(i)]);
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (word >> (8 * byte) & 255)) * 0x100000001b3ull;
    }
  }
  version.etag = absl::StrCat(version.generation, "-",
                              absl::Hex(hash >> 32, absl::kZeroPad8));
  return version;
}

absl::StatusOr<Snapshot> PoolSubject::TakeSnapshot(bool full) {
  const auto taken = std::chrono::system_clock::now();
  const auto start = std::chrono::steady_clock::now();
  Snapshot snapshot = ReadSnapshot(*segment_, full);
  snapshot.subject = name_;
  snapshot.unix_seconds = Seconds(taken.time_since_epoch());
  const SubjectVersion version = Version();
  snapshot.generation = version.generation;
  snapshot.etag = version.etag;
  snapshot.observers = attach_->observers();
  snapshot.refused_attaches = attach_->Refusals();
  {
    MutexLock lock(watch_mutex_);
    processes_->Look(&snapshot);
  }
  snapshot.duration_seconds = Seconds(std::chrono::steady_clock::now() - start);
  return snapshot;
}

std::vector<TunableState> PoolSubject::Tunables() const {
  const SegmentHeader& header = segment_->header();
  std::vector<TunableState> states;
  for (const TunableDef& def : TunableTable()) {
    const auto id = static_cast<size_t>(def.id);
    TunableState state;
    state.def = &def;
    state.value = segment_->Tunable(def.id);
    state.origin = OriginName(LoadRelaxed(header.tunable_origins[id]));
    state.changed_generation =
        static_cast<int64_t>(LoadRelaxed(header.tunable_generations[id]));
    states.push_back(std::move(state));
  }
  return states;
}

absl::Status PoolSubject::CheckEtag(const std::string& etag) const {
  const std::string current = Version().etag;
  if (etag.empty() || etag == current) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "etag is ", etag, ", the subject is at ", current, ": read it again"));
}

ChangeResult PoolSubject::ResultLocked(std::vector<ValueChange> values,
                                       std::vector<Effect> effects) const {
  ChangeResult result;
  const SubjectVersion version = Version();
  result.generation = version.generation;
  result.etag = version.etag;
  result.values = std::move(values);
  result.effects = std::move(effects);
  return result;
}

absl::Status PoolSubject::TuningBusy() const {
  return absl::UnavailableError(
      absl::StrCat(name_, ": the process that holds the tuning lock does not ",
                   "run (`memtunectl processes` names it); nothing changed"));
}

absl::Status PoolSubject::StoreTunablesLocked(
    const std::vector<ValueChange>& values) {
  std::vector<TunableWord> words;
  bool only_watermarks = true;
  for (const ValueChange& change : values) {
    const TunableDef& def = *FindTunable(change.tunable);
    words.push_back({def.id, EncodeTunable(def, change.requested)});
    only_watermarks &= change.tunable.rfind("watermark.", 0) == 0;
  }
  Segment& segment = *segment_;
  if (!LockTuning(segment, thread_.owner, RenewedPatience())) {
    return TuningBusy();
  }
  ChangeTunablesLocked(segment, words,
                       static_cast<uint32_t>(TunableOrigin::kChange));
  RecalculateLocked(segment, only_watermarks ? RecalculateTrigger::kWatermark
                                             : RecalculateTrigger::kTunable);
  segment.header().tuning_lock.Unlock();
  PublishLimits(segment);
  return absl::OkStatus();
}

absl::StatusOr<ChangeResult> PoolSubject::Apply(
    const std::vector<TunableAssignment>& assignments,
    const ChangeContext& context) {
  MutexLock lock(mutex_);
  if (absl::Status s = CheckEtag(context.etag); !s.ok()) return s;
  std::vector<ValueChange> values;
  std::set<std::string> seen;
  RecalculateInputs inputs = InputsNow(*segment_);
  const PagesetPolicy old_policy = inputs.policy;
  bool limits = false;
  for (const TunableAssignment& assignment : assignments) {
    const TunableDef* def = FindTunable(assignment.tunable);
    if (def == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no tunable \"", assignment.tunable, "\""));
    }
    if (!seen.insert(assignment.tunable).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(assignment.tunable, " is set twice in one change"));
    }
    auto value = CheckTunable(*def, assignment.value);
    if (!value.ok()) return value.status();
    inputs = InputsWith(inputs, def->id, *value);
    limits |= assignment.tunable.rfind("watermark.", 0) != 0;
    const TunableValue before = segment_->Tunable(def->id);
    values.push_back({"", assignment.tunable, before, *value, before});
  }
  limits |= PolicyRecalculates(inputs.policy, RecalculateTrigger::kWatermark);
  std::vector<Effect> effects =
      EffectsOf(*segment_, ComputeTargets(*segment_, inputs), limits);
  if (context.validate_only) {
    for (ValueChange& change : values) change.after = change.requested;
    return ResultLocked(std::move(values), std::move(effects));
  }
  if (absl::Status s = StoreTunablesLocked(values); !s.ok()) return s;
  if (inputs.policy != old_policy) {
    // Another policy keeps other lists: what lies in the old ones would be
    // found by nobody.
    for (uint32_t i = 0; i < segment_->mapping().nr_zones; ++i) {
      ZoneDrain drained;
      DrainZoneLocked(i, Scope{}, false, &drained);
    }
  }
  for (ValueChange& change : values) {
    change.after = segment_->Tunable(FindTunable(change.tunable)->id);
  }
  return ResultLocked(std::move(values), std::move(effects));
}

absl::StatusOr<std::vector<uint32_t>> PoolSubject::ZonesOf(
    const Scope& scope) const {
  const Mapping& m = segment_->mapping();
  for (int node : scope.nodes) {
    if (topology_.NodeIndexOf(node) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("scope.nodes: ", name_, " has no node ", node));
    }
  }
  std::vector<uint32_t> zones;
  std::set<std::string> kinds;
  for (uint32_t i = 0; i < m.nr_zones; ++i) {
    const ZoneInfo& z = m.zone_info[i];
    const std::string kind = ZoneKindName(z.kind);
    kinds.insert(kind);
    const bool node_ok = scope.nodes.empty() ||
                         std::count(scope.nodes.begin(), scope.nodes.end(),
                                    static_cast<int>(z.node)) != 0;
    const bool kind_ok =
        scope.zones.empty() ||
        std::count(scope.zones.begin(), scope.zones.end(), kind) != 0;
    if (node_ok && kind_ok) zones.push_back(i);
  }
  for (const std::string& kind : scope.zones) {
    if (kinds.count(kind) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("scope.zones: ", name_, " has no zone ", kind));
    }
  }
  if (zones.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("scope: names no zone of ", name_));
  }
  return zones;
}

absl::StatusOr<ChangeResult> PoolSubject::Recalculate(
    const Scope& scope, const ChangeContext& context) {
  auto zones = ZonesOf(scope);
  if (!zones.ok()) return zones.status();
  MutexLock lock(mutex_);
  if (absl::Status s = CheckEtag(context.etag); !s.ok()) return s;
  std::vector<Effect> effects;
  for (Effect& effect : EffectsOf(
           *segment_, ComputeTargets(*segment_, InputsNow(*segment_)), true)) {
    for (uint32_t number : *zones) {
      const Zone& zone = segment_->zone(number);
      if (effect.where == absl::StrCat("nodes/", zone.node(), "/zones/",
                                       ZoneKindName(zone.info().kind))) {
        effects.push_back(effect);
      }
    }
  }
  if (!context.validate_only) {
    Segment& segment = *segment_;
    if (!LockTuning(segment, thread_.owner, RenewedPatience())) {
      return TuningBusy();
    }
    RecalculateLocked(segment, RecalculateTrigger::kRequest, *zones);
    Bump(segment.header().generation);
    segment.header().tuning_lock.Unlock();
  }
  return ResultLocked({}, std::move(effects));
}

}  // namespace memtuned
