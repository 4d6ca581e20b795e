// SPDX-License-Identifier: Apache-2.0
// Implementation of assignment.h.
#include "client/ctl/assignment.h"

#include <charconv>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>

#include "client/ctl/invocation.h"
#include "client/ctl/labels.h"
#include "client/ctl/rpc_error.h"
#include "core/tunables.h"

namespace memtuned::ctl {
namespace {

std::string NearestTunable(const std::string& name) {
  std::vector<std::string> names;
  for (const TunableDef& def : TunableTable()) names.push_back(def.name);
  std::string nearest = Nearest(name, names);
  if (!nearest.empty()) return nearest;
  // "batch_factor" without its group.
  for (const std::string& each : names) {
    if (each.substr(each.find('.') + 1) == name) return each;
  }
  return "";
}

absl::StatusOr<v1::Assignment> ParseOne(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        "'" + text +
        "' is no assignment; allowed TUNABLE=VALUE, as in "
        "pageset.batch_factor=2");
  }
  const std::string name = text.substr(0, equals);
  const TunableDef* def = FindTunable(name);
  if (def == nullptr) {
    const std::string nearest = NearestTunable(name);
    return absl::InvalidArgumentError(
        "unknown tunable '" + name + "'; " +
        (nearest.empty() ? "see 'memtunectl tunables'"
                         : "did you mean '" + nearest + "'?"));
  }
  auto value = ParseTunable(*def, std::string_view(text).substr(equals + 1));
  if (!value.ok()) return value.status();
  v1::Assignment assignment;
  assignment.set_tunable(name);
  *assignment.mutable_value() = ToProto(*value);
  return assignment;
}

}  // namespace

absl::StatusOr<std::vector<v1::Assignment>> ParseAssignments(
    const std::vector<std::string>& texts) {
  std::vector<v1::Assignment> assignments;
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    auto assignment = ParseOne(text);
    if (!assignment.ok()) return assignment.status();
    if (!seen.insert(assignment->tunable()).second) {
      return absl::InvalidArgumentError(assignment->tunable() +
                                        " is given twice; allowed once");
    }
    assignments.push_back(std::move(*assignment));
  }
  return assignments;
}

absl::StatusOr<v1::Value> ParseLimit(const std::string& text) {
  const TunableDef& def = GetTunable(TunableId::kProcessMaxBytes);
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (text == "auto") return ToProto(TunableValue(AutoValue()));
  std::string digits = text == "none" ? "0" : text;
  int shift = 0;
  for (size_t i = 0; i < std::size(kUnits); ++i) {
    if (!std::string_view(text).ends_with(kUnits[i])) continue;
    digits.resize(text.size() - kUnits[i].size());
    shift = 10 * static_cast<int>(i + 1);
  }
  uint64_t bytes = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  const bool number =
      error == std::errc() && end == digits.data() + digits.size();
  if (number && bytes <= uint64_t{INT64_MAX} >> shift) {
    auto value =
        CheckTunable(def, TunableValue(static_cast<int64_t>(bytes << shift)));
    if (value.ok()) return ToProto(*value);
  }
  return absl::InvalidArgumentError("limit is '" + text +
                                    "'; allowed none, auto or " +
                                    AllowedText(def) + " bytes, as in 512MiB");
}

absl::Status WithNearestTunable(const absl::Status& status,
                                const std::string& name) {
  if (!absl::IsNotFound(status) && !absl::IsInvalidArgument(status)) {
    return status;
  }
  const std::string nearest = NearestTunable(name);
  if (nearest.empty() || nearest == name) return status;
  return WithMessage(status, std::string(status.message()) +
                                 "; did you mean '" + nearest + "'?");
}

}  // namespace memtuned::ctl
