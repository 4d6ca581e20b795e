// SPDX-License-Identifier: Apache-2.0
// Recalculation: watermarks and pageset limits of all zones as a function of
// today's facts (managed pages, CPUs, tunables), published once per zone.
// Always outside any zone or pageset lock. Floor 2.
#ifndef MEMTUNED_CORE_RECALCULATE_H_
#define MEMTUNED_CORE_RECALCULATE_H_

#include <span>
#include <vector>

#include "core/segment.h"

namespace memtuned {

// What a zone's limits and watermarks should be.
struct ZoneTargets {
  PagesetLimits limits;
  Watermarks watermarks;
};

// Tunables as Recalculate needs them, so that a plan can be computed without
// touching the segment.
struct RecalculateInputs {
  PagesetPolicy policy = PagesetPolicy::kMemtuned;
  double batch_factor = 1;
  double free_high_factor = 1;
  uint32_t high_fraction = 0;
  uint32_t depot_high_fraction = 0;
  int64_t min_free_kbytes = -1;  // -1: auto
  uint32_t scale_factor = 10;
};
RecalculateInputs InputsNow(const Segment& segment);
// The same with some tunables replaced; unknown kinds are left alone.
RecalculateInputs InputsWith(RecalculateInputs inputs, TunableId id,
                             const TunableValue& value);

// Targets of every zone, in zone order. Pure but for reading the segment.
std::vector<ZoneTargets> ComputeTargets(const Segment& segment,
                                        const RecalculateInputs& inputs);

// Whether `policy` recomputes pageset limits on this trigger:
//   fixed       created, initialised, tunable, request
//   watermark, adaptive, adaptive-high
//               the same and CPUs and watermark changes
//   memtuned    everything
bool PolicyRecalculates(PagesetPolicy policy, RecalculateTrigger trigger);

// Takes the tuning lock; from a holder that died its change is ended first.
// Blocks: as long as `patience` lasts.
// Returns: false when the holder lives and does not let go.
bool LockTuning(Segment& segment, ThreadOwner owner, Patience& patience)
    TRY_ACQUIRE(true, segment.header().tuning_lock);

// Takes: the tuning lock. Returns: false, and nothing changed, when its holder
// does not let go.
bool Recalculate(Segment& segment, RecalculateTrigger trigger,
                 ThreadOwner owner);
// `zones`: numbers of the zones to publish, empty for all.
void RecalculateLocked(Segment& segment, RecalculateTrigger trigger,
                       std::span<const uint32_t> zones = {})
    REQUIRES(segment.header().tuning_lock);
// Whether sections came since limits were computed: whoever brought the last
// one died before it could.
bool LimitsOverdue(const Segment& segment);

// Values of some tunables, as EncodeTunable has them.
struct TunableWord {
  TunableId id;
  uint64_t word;
};
// Puts them in force, all or, should this thread die, none or all: a new
// generation of the pool. Limits are not computed yet.
void ChangeTunablesLocked(Segment& segment, std::span<const TunableWord> words,
                          uint32_t origin)
    REQUIRES(segment.header().tuning_lock);

// How many CPUs of each node are online, from the CPUs that are.
void CountOnlineCpusLocked(Segment& segment)
    REQUIRES(segment.header().tuning_lock);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_RECALCULATE_H_
