// SPDX-License-Identifier: Apache-2.0
// Implementation of change_text.h.
#include "client/ctl/change_text.h"

#include <algorithm>

#include "client/ctl/labels.h"

namespace memtuned::ctl {
namespace {

constexpr size_t kLabelWidth = 12;  // "effects     "
constexpr size_t kZonesNamed = 4;   // before "and N more"

std::string Pad(std::string text, size_t width) {
  const auto used = static_cast<size_t>(DisplayWidth(text));
  if (used < width) text.append(width - used, ' ');
  return text;
}

// Effects that say the same about several zones.
struct EffectGroup {
  const v1::Effect* effect = nullptr;
  std::vector<std::string> zones;
};

std::vector<EffectGroup> GroupEffects(const v1::Change& change) {
  std::vector<EffectGroup> groups;
  for (const v1::Effect& effect : change.effects()) {
    auto same = std::find_if(
        groups.begin(), groups.end(), [&](const EffectGroup& group) {
          return group.effect->what() == effect.what() &&
                 group.effect->unit() == effect.unit() &&
                 group.effect->before() == effect.before() &&
                 group.effect->after() == effect.after();
        });
    if (same == groups.end()) {
      groups.push_back({&effect, {}});
      same = groups.end() - 1;
    }
    same->zones.push_back(ZoneLabel(effect.where()));
  }
  return groups;
}

std::string ZonesText(const std::vector<std::string>& zones, bool all) {
  const size_t named =
      all || zones.size() <= kZonesNamed ? zones.size() : kZonesNamed;
  std::string text;
  for (size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "" : ", ") + zones[i];
  }
  if (named < zones.size()) {
    text += " and " + std::to_string(zones.size() - named) + " more";
  }
  return text;
}

std::string Amount(int64_t amount, const std::string& unit,
                   const Formatter& format) {
  return unit == "bytes" ? format.Bytes(amount) : format.Count(amount);
}

// "processes/3-17 process.max_bytes"; of the whole subject only the latter.
std::string WhatText(const v1::ValueChange& value) {
  return value.scope().empty() ? value.tunable()
                               : value.scope() + " " + value.tunable();
}

std::vector<std::string> ValueLines(const v1::Change& change) {
  size_t width = 0;
  for (const v1::ValueChange& value : change.values()) {
    width = std::max(width, WhatText(value).size());
  }
  std::vector<std::string> lines;
  for (const v1::ValueChange& value : change.values()) {
    const std::string after = ValueText(value.after());
    const std::string requested = ValueText(value.requested());
    std::string line = "  " + Pad(WhatText(value), width + 2) +
                       ValueText(value.before()) + " -> " + after;
    if (value.has_requested() && requested != after) {
      line += "  (asked for " + requested + ")";
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> ChangeParts(const v1::Change& change) {
  std::string state = "applied";
  if (change.state() == v1::CHANGE_STATE_PLANNED) {
    state = "plan only, nothing changed";
  } else if (change.state() == v1::CHANGE_STATE_PARTIAL) {
    state = "applied in part";
  }
  return {state, "generation " + std::to_string(change.generation()),
          "etag \"" + change.etag() + "\""};
}

std::vector<std::string> ChangeLines(const v1::Change& change,
                                     const Formatter& format, bool all_zones) {
  std::vector<std::string> lines = ValueLines(change);
  const std::vector<EffectGroup> groups = GroupEffects(change);
  size_t width = 0;
  std::vector<std::string> subjects;
  for (const EffectGroup& group : groups) {
    subjects.push_back(ZonesText(group.zones, all_zones) + " " +
                       group.effect->what());
    width = std::max(width, static_cast<size_t>(DisplayWidth(subjects.back())));
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const v1::Effect& effect = *groups[i].effect;
    std::string line = Pad(i == 0 ? "effects" : "", kLabelWidth) +
                       Pad(subjects[i], width + 2) +
                       Amount(effect.before(), effect.unit(), format) + " -> " +
                       Amount(effect.after(), effect.unit(), format);
    if (effect.unit() != "bytes" && !effect.unit().empty()) {
      line += " " + effect.unit();
    }
    lines.push_back(line);
  }
  // What is set for one process moves nothing of the pool's.
  const bool of_all =
      change.values_size() == 0 || change.values(0).scope().empty();
  if (groups.empty() && of_all && change.kind() != v1::CHANGE_KIND_DRAIN) {
    lines.push_back(Pad("effects", kLabelWidth) +
                    "none: no limit and no watermark moves");
  }
  for (const v1::Risk& risk : change.risks()) {
    lines.push_back(Pad("risk", kLabelWidth) + risk.id() + " (" +
                    risk.severity() + "): " + risk.sentence());
    if (!risk.instead().empty()) {
      lines.push_back(Pad("", kLabelWidth) + "instead: " + risk.instead());
    }
  }
  return lines;
}

}  // namespace memtuned::ctl
