// SPDX-License-Identifier: Apache-2.0
// Predicting what a change will move.
#include "absl/strings/str_cat.h"
#include "daemon/pool/pool_subject.h"

namespace memtuned {
namespace {

class EffectList {
 public:
  explicit EffectList(std::string where) : where_(std::move(where)) {}

  void Pages(const char* what, uint64_t before, uint64_t after) {
    Add(what, "pages", before, after);
  }
  void Bytes(const char* what, uint64_t before_pages, uint64_t after_pages) {
    Add(what, "bytes", before_pages * kPageSizeBytes,
        after_pages * kPageSizeBytes);
  }
  std::vector<Effect> Take() { return std::move(effects_); }

 private:
  void Add(const char* what, const char* unit, uint64_t before,
           uint64_t after) {
    if (before == after) return;
    effects_.push_back({where_, what, unit, static_cast<int64_t>(before),
                        static_cast<int64_t>(after)});
  }

  std::string where_;
  std::vector<Effect> effects_;
};

}  // namespace

std::vector<Effect> EffectsOf(Segment& segment,
                              const std::vector<ZoneTargets>& targets,
                              bool limits) {
  std::vector<Effect> effects;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Zone& zone = segment.zone(static_cast<uint32_t>(i));
    EffectList list(absl::StrCat("nodes/", zone.node(), "/zones/",
                                 ZoneKindName(zone.shared().kind)));
    if (limits) {
      const PagesetLimits now = zone.LimitsNow();
      const PagesetLimits& then = targets[i].limits;
      list.Pages("pageset batch", now.batch, then.batch);
      list.Pages("pageset high_min", now.high_min, then.high_min);
      list.Pages("pageset high_max", now.high_max, then.high_max);
      if (now.free_high_threshold != kNil && then.free_high_threshold != kNil) {
        list.Pages("pageset free-high threshold", now.free_high_threshold,
                   then.free_high_threshold);
      }
    }
    const Watermarks now = zone.WatermarksNow();
    const Watermarks& then = targets[i].watermarks;
    list.Bytes("watermark min", now.min, then.min);
    list.Bytes("watermark low", now.low, then.low);
    list.Bytes("watermark high", now.high, then.high);
    std::vector<Effect> of_zone = list.Take();
    effects.insert(effects.end(), of_zone.begin(), of_zone.end());
  }
  return effects;
}

}  // namespace memtuned
