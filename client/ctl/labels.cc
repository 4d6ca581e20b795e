// SPDX-License-Identifier: Apache-2.0
// Implementation of labels.h.
#include "client/ctl/labels.h"

#include <vector>

namespace memtuned::ctl {
namespace {

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string ZoneLabel(std::string_view resource) {
  const std::vector<std::string_view> parts = SplitPath(resource);
  std::string label;
  // A pool may be called "nodes".
  const size_t start = parts[0] == "pools" ? 2 : 0;
  for (size_t i = start; i + 1 < parts.size(); ++i) {
    if (parts[i] == "nodes" && label.empty()) {
      label = parts[++i];
    } else if (parts[i] == "zones") {
      label += "/" + std::string(parts[++i]);
    }
  }
  return label.empty() ? std::string(resource) : label;
}

std::string LastPart(std::string_view resource) {
  return std::string(resource.substr(resource.rfind('/') + 1));
}

Cell ZoneStateCell(const v1::Zone& zone, const Formatter& format) {
  switch (zone.state()) {
    case v1::ZONE_STATE_READY:
      return {"ready", Tone::kGood};
    case v1::ZONE_STATE_INITIALISING: {
      const double share = zone.present_bytes() <= 0
                               ? 0
                               : static_cast<double>(zone.managed_bytes()) /
                                     static_cast<double>(zone.present_bytes());
      return {"initialising " + format.Percent(share), Tone::kWarning};
    }
    case v1::ZONE_STATE_NOT_SET_UP:
      return {"not set up", Tone::kFaint};
    case v1::ZONE_STATE_DEGRADED:
      return {"degraded", Tone::kBad};
    default:
      return kAbsent;
  }
}

Cell LimitsCell(const v1::LimitsCheck& limits) {
  switch (limits.state()) {
    case v1::LIMITS_STATE_OK:
      return {"ok", Tone::kGood};
    case v1::LIMITS_STATE_STALE:
      return {
          "stale: expected " + std::to_string(limits.expected_batch()) + "/" +
              RangeText(limits.expected_high_min(), limits.expected_high_max()),
          Tone::kBad};
    case v1::LIMITS_STATE_UNKNOWN:
      return {"unknown", Tone::kWarning};
    default:
      return kAbsent;
  }
}

std::string RangeText(int64_t min, int64_t max) {
  return min == max ? std::to_string(min)
                    : std::to_string(min) + ".." + std::to_string(max);
}

std::string ShareText(int64_t part, int64_t whole, const Formatter& format) {
  if (whole <= 0) return kAbsent;
  return format.Percent(static_cast<double>(part) / static_cast<double>(whole));
}

Cell SubjectStateCell(v1::SubjectState state) {
  switch (state) {
    case v1::SUBJECT_STATE_READY:
      return {"ready", Tone::kGood};
    case v1::SUBJECT_STATE_INITIALISING:
      return {"initialising", Tone::kWarning};
    case v1::SUBJECT_STATE_DEGRADED:
      return {"degraded", Tone::kBad};
    case v1::SUBJECT_STATE_UNKNOWN:
      return {"unknown", Tone::kWarning};
    default:
      return kAbsent;
  }
}

Cell ProcessStateCell(v1::ProcessState state) {
  switch (state) {
    case v1::PROCESS_STATE_RUNNING:
      return {"running", Tone::kGood};
    case v1::PROCESS_STATE_STOPPED:
      return {"stopped", Tone::kWarning};
    case v1::PROCESS_STATE_REAPING:
      return {"reaping", Tone::kBad};
    default:
      return kAbsent;
  }
}

const char* OriginText(v1::Origin origin) {
  switch (origin) {
    case v1::ORIGIN_DEFAULT:
      return "default";
    case v1::ORIGIN_CONFIG:
      return "config";
    case v1::ORIGIN_CHANGE:
      return "change";
    case v1::ORIGIN_FOREIGN:
      return "foreign";
    default:
      return kAbsent;
  }
}

const char* SourceText(v1::TopologySource source) {
  switch (source) {
    case v1::TOPOLOGY_SOURCE_LIVE:
      return "live";
    case v1::TOPOLOGY_SOURCE_XML:
      return "xml";
    case v1::TOPOLOGY_SOURCE_SYNTHETIC:
      return "synthetic";
    default:
      return kAbsent;
  }
}

std::string ValueText(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInteger:
      return memtuned::ValueText(TunableValue(value.integer()));
    case v1::Value::kReal:
      return memtuned::ValueText(TunableValue(value.real()));
    case v1::Value::kChoice:
      return memtuned::ValueText(TunableValue(value.choice()));
    case v1::Value::kFlag:
      return memtuned::ValueText(TunableValue(value.flag()));
    case v1::Value::kAuto:
      return memtuned::ValueText(TunableValue(AutoValue()));
    default:
      return kAbsent;
  }
}

v1::Value ToProto(const TunableValue& value) {
  v1::Value proto;
  if (std::holds_alternative<AutoValue>(value)) {
    proto.mutable_auto_();
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    proto.set_integer(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    proto.set_real(*real);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    proto.set_flag(*flag);
  } else {
    proto.set_choice(std::get<std::string>(value));
  }
  return proto;
}

}  // namespace memtuned::ctl
