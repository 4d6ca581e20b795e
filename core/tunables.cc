// SPDX-License-Identifier: Apache-2.0
// The table of tunables and the one parser and range check behind it. Numbers
// are read and written without the locale.
#include "core/tunables.h"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

constexpr const char* kPolicies[] = {"fixed", "watermark", "adaptive",
                                     "adaptive-high", "memtuned"};

constexpr std::array<TunableDef, kNumTunables> kTunables = {{
    {.id = TunableId::kPagesetPolicy,
     .name = "pageset.policy",
     .kernel_name = "",
     .unit = "",
     .kind = TunableKind::kChoice,
     .min = 0,
     .max = 0,
     .zero_allowed = false,
     .auto_allowed = false,
     .default_text = "memtuned",
     .choices = kPolicies,
     .help = "How pageset limits follow the zone and when pages are "
             "flushed: a kernel era's rule or memtuned's own; at the next "
             "operation."},
    {.id = TunableId::kPagesetBatchFactor,
     .name = "pageset.batch_factor",
     .kernel_name = "",
     .unit = "",
     .kind = TunableKind::kReal,
     .min = 0.25,
     .max = 8,
     .zero_allowed = false,
     .auto_allowed = false,
     .default_text = "1",
     .choices = {},
     .help = "Multiplies each zone's computed batch; limits are "
             "recalculated at once."},
    {.id = TunableId::kPagesetFreeHighFactor,
     .name = "pageset.free_high_factor",
     .kernel_name = "",
     .unit = "",
     .kind = TunableKind::kReal,
     .min = 1,
     .max = 64,
     .zero_allowed = false,
     .auto_allowed = false,
     .default_text = "5",
     .choices = {},
     .help = "A high-order free flushes once this many batches were freed "
             "in a row; at the next free."},
    {.id = TunableId::kPagesetHighFraction,
     .name = "pageset.high_fraction",
     .kernel_name = "vm.percpu_pagelist_high_fraction",
     .unit = "",
     .kind = TunableKind::kInteger,
     .min = 8,
     .max = 2147483647,
     .zero_allowed = true,
     .auto_allowed = false,
     .default_text = "0",
     .choices = {},
     .help = "All pagesets of a zone together hold at most managed pages / "
             "this; 0 computes the limit from the low watermark; "
             "recalculated at once."},
    {.id = TunableId::kDepotHighFraction,
     .name = "depot.high_fraction",
     .kernel_name = "",
     .unit = "",
     .kind = TunableKind::kInteger,
     .min = 8,
     .max = 1000000,
     .zero_allowed = true,
     .auto_allowed = false,
     .default_text = "32",
     .choices = {},
     .help = "A zone's depot holds at most managed pages / this, 0 means "
             "no depot; policy memtuned only; at the next flush."},
    {.id = TunableId::kWatermarkMinFreeKbytes,
     .name = "watermark.min_free_kbytes",
     .kernel_name = "vm.min_free_kbytes",
     .unit = "KiB",
     .kind = TunableKind::kInteger,
     .min = 0,
     .max = 67108864,
     .zero_allowed = false,
     .auto_allowed = true,
     .default_text = "auto",
     .choices = {},
     .help = "Memory kept free for the min watermarks of all zones, auto "
             "computes it from the size; watermarks and limits are "
             "recalculated at once."},
    {.id = TunableId::kWatermarkScaleFactor,
     .name = "watermark.scale_factor",
     .kernel_name = "vm.watermark_scale_factor",
     .unit = "1/10000",
     .kind = TunableKind::kInteger,
     .min = 1,
     .max = 3000,
     .zero_allowed = false,
     .auto_allowed = false,
     .default_text = "10",
     .choices = {},
     .help = "Distance between watermarks as a share of a zone's managed "
             "pages; watermarks and limits are recalculated at once."},
    {.id = TunableId::kInitSectionsPerSecond,
     .name = "init.sections_per_second",
     .kernel_name = "",
     .unit = "1/s",
     .kind = TunableKind::kInteger,
     .min = 0,
     .max = 1000000,
     .zero_allowed = false,
     .auto_allowed = false,
     .default_text = "0",
     .choices = {},
     .help = "Sections of 128 MiB each node initialises a second, 0 is as "
             "fast as possible; at the next section."},
    {.id = TunableId::kProcessMaxBytes,
     .name = "process.max_bytes",
     .kernel_name = "",
     .unit = "bytes",
     .kind = TunableKind::kInteger,
     .min = 4096,
     .max = 17592186040320,
     .zero_allowed = true,
     .auto_allowed = false,
     .default_text = "0",
     .choices = {},
     .help = "What one attached process may hold, rounded down to whole pages, "
             "0 is no limit; a limit of its own (memtunectl limit) takes its "
             "place; at the next allocation."},
}};

constexpr bool InIdOrder() {
  for (int i = 0; i < kNumTunables; ++i) {
    if (static_cast<int>(kTunables[i].id) != i) return false;
  }
  return true;
}
static_assert(InIdOrder(), "rows must stand in TunableId order");

constexpr size_t kMaxEchoedText = 64;

std::string RealText(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

// A bound as text: 67108864, not 6.7108864e+07.
std::string BoundText(double bound) {
  if (bound == std::floor(bound)) {
    return absl::StrCat(static_cast<int64_t>(bound));
  }
  return RealText(bound);
}

// Text that came from outside, safe to print and of bounded length.
std::string EchoedText(std::string_view text) {
  const bool cut = text.size() > kMaxEchoedText;
  const std::string_view shown = text.substr(0, kMaxEchoedText);
  bool plain = !shown.empty();
  for (const char c : shown) plain = plain && c > ' ' && c < 0x7f;
  std::string out(shown);
  if (!plain) {
    out = absl::StrCat(
        "\"", absl::CHexEscape(absl::string_view(shown.data(), shown.size())),
        "\"");
  }
  if (cut) absl::StrAppend(&out, "... (", text.size(), " bytes)");
  return out;
}

absl::Status Refused(const TunableDef& def, std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      def.name, " is ", EchoedText(text), "; allowed ", AllowedText(def),
      def.kind == TunableKind::kInteger ? " (integer)" : ""));
}

bool InRange(const TunableDef& def, double value) {
  if (def.zero_allowed && value == 0) return true;
  return value >= def.min && value <= def.max;  // false for NaN
}

absl::StatusOr<TunableValue> CheckChoice(const TunableDef& def,
                                         std::string_view text) {
  for (const char* choice : def.choices) {
    if (text == choice) return TunableValue(std::string(text));
  }
  return Refused(def, text);
}

// Reads the whole of `text` or nothing: no white space, sign '+', hex digits
// or locale's decimal comma.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::span<const TunableDef> TunableTable() { return kTunables; }

const TunableDef& GetTunable(TunableId id) {
  return kTunables[static_cast<size_t>(id)];
}

const TunableDef* FindTunable(std::string_view name) {
  for (const TunableDef& def : kTunables) {
    if (name == def.name) return &def;
  }
  return nullptr;
}

absl::StatusOr<TunableValue> ParseTunable(const TunableDef& def,
                                          std::string_view text) {
  if (def.auto_allowed && text == "auto") return TunableValue(AutoValue{});
  switch (def.kind) {
    case TunableKind::kChoice:
      return CheckChoice(def, text);
    case TunableKind::kFlag:
      if (text == "true") return TunableValue(true);
      if (text == "false") return TunableValue(false);
      break;
    case TunableKind::kInteger:
      if (const auto value = ParseNumber<int64_t>(text);
          value && InRange(def, static_cast<double>(*value))) {
        return TunableValue(*value);
      }
      break;
    case TunableKind::kReal:
      if (const auto value = ParseNumber<double>(text);
          value && InRange(def, *value)) {
        return TunableValue(*value);
      }
      break;
  }
  return Refused(def, text);
}

absl::StatusOr<TunableValue> CheckTunable(const TunableDef& def,
                                          const TunableValue& value) {
  if (std::holds_alternative<AutoValue>(value)) {
    if (def.auto_allowed) return value;
    return Refused(def, "auto");
  }
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  switch (def.kind) {
    case TunableKind::kChoice:
      if (const auto* text = std::get_if<std::string>(&value)) {
        return CheckChoice(def, *text);
      }
      break;
    case TunableKind::kFlag:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case TunableKind::kInteger:
      if (integer && InRange(def, static_cast<double>(*integer))) {
        return value;
      }
      break;
    case TunableKind::kReal:
      if (real && InRange(def, *real)) return value;
      if (integer && InRange(def, static_cast<double>(*integer))) {
        return TunableValue(static_cast<double>(*integer));
      }
      break;
  }
  return Refused(def, ValueText(value));
}

TunableValue DefaultValue(const TunableDef& def) {
  // The table's own defaults are valid: tests/core/tunables_test.cc.
  return *ParseTunable(def, def.default_text);
}

std::string AllowedText(const TunableDef& def) {
  std::string out;
  if (def.auto_allowed) out = "auto or ";
  if (def.kind == TunableKind::kFlag) return out + "true, false";
  if (def.kind == TunableKind::kChoice) {
    const char* separator = "";
    for (const char* choice : def.choices) {
      absl::StrAppend(&out, separator, choice);
      separator = ", ";
    }
    return out;
  }
  if (def.zero_allowed) out += "0 or ";
  absl::StrAppend(&out, BoundText(def.min), " to ", BoundText(def.max));
  return out;
}

std::string ValueText(const TunableValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return absl::StrCat(*integer);
  }
  if (const auto* real = std::get_if<double>(&value)) return RealText(*real);
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "auto";
}

}  // namespace memtuned
