// SPDX-License-Identifier: Apache-2.0
// Tunables, changes and drains as messages.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/names.h"

namespace memtuned {
namespace {

v1::Origin ToOrigin(const std::string& origin) {
  if (origin == "default") return v1::ORIGIN_DEFAULT;
  if (origin == "config") return v1::ORIGIN_CONFIG;
  if (origin == "change") return v1::ORIGIN_CHANGE;
  if (origin == "foreign") return v1::ORIGIN_FOREIGN;
  return v1::ORIGIN_UNSPECIFIED;
}

void FillRange(const TunableDef& def, v1::Range& range) {
  if (def.kind == TunableKind::kInteger || def.kind == TunableKind::kReal) {
    range.set_min(def.min);
    range.set_max(def.max);
  }
  range.set_zero_allowed(def.zero_allowed);
  range.set_auto_allowed(def.auto_allowed);
  for (const char* choice : def.choices) range.add_choices(choice);
  range.set_text(AllowedText(def));
}

struct ValueWriter {
  v1::Value& out;
  void operator()(const AutoValue&) const { out.mutable_auto_(); }
  void operator()(int64_t value) const { out.set_integer(value); }
  void operator()(double value) const { out.set_real(value); }
  void operator()(bool value) const { out.set_flag(value); }
  void operator()(const std::string& value) const { out.set_choice(value); }
};

}  // namespace

google::protobuf::Timestamp ToTimestamp(double unix_seconds) {
  google::protobuf::Timestamp time;
  const double whole = std::floor(unix_seconds);
  time.set_seconds(static_cast<int64_t>(whole));
  time.set_nanos(static_cast<int32_t>((unix_seconds - whole) * 1e9));
  return time;
}

google::protobuf::Duration ToDuration(double seconds) {
  google::protobuf::Duration duration;
  const double whole = std::trunc(seconds);
  duration.set_seconds(static_cast<int64_t>(whole));
  duration.set_nanos(static_cast<int32_t>((seconds - whole) * 1e9));
  return duration;
}

v1::Value ToProto(const TunableValue& value) {
  v1::Value out;
  std::visit(ValueWriter{out}, value);
  return out;
}

std::optional<TunableValue> FromProto(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInteger:
      return TunableValue(static_cast<int64_t>(value.integer()));
    case v1::Value::kReal:
      return TunableValue(value.real());
    case v1::Value::kChoice:
      return TunableValue(std::string(value.choice()));
    case v1::Value::kFlag:
      return TunableValue(value.flag());
    case v1::Value::kAuto:
      return TunableValue(AutoValue{});
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

v1::Tunable ToProto(const std::string& subject, const TunableState& state) {
  const TunableDef& def = *state.def;
  v1::Tunable out;
  out.set_name(absl::StrCat(subject, "/tunables/", def.name));
  out.set_kernel_name(def.kernel_name);
  out.set_unit(def.unit);
  out.set_help(def.help);
  *out.mutable_value() = ToProto(state.value);
  *out.mutable_default_value() = ToProto(DefaultValue(def));
  FillRange(def, *out.mutable_range());
  out.set_writable(state.writable);
  out.set_read_only_reason(state.read_only_reason);
  out.set_origin(ToOrigin(state.origin));
  out.set_changed_generation(state.changed_generation);
  *out.mutable_observed_time() = ToTimestamp(UnixNow());
  out.set_reversible(state.reversible);
  return out;
}

void FillChange(const std::string& subject, const ChangeResult& result,
                v1::Change& change) {
  if (change.state() != v1::CHANGE_STATE_PLANNED) {
    change.set_name(absl::StrCat(subject, "/changes/", result.generation));
  }
  change.set_generation(result.generation);
  change.set_etag(result.etag);
  for (const ValueChange& value : result.values) {
    v1::ValueChange& out = *change.add_values();
    out.set_scope(value.scope);
    out.set_tunable(value.tunable);
    *out.mutable_before() = ToProto(value.before);
    *out.mutable_requested() = ToProto(value.requested);
    *out.mutable_after() = ToProto(value.after);
  }
  for (const Effect& effect : result.effects) {
    v1::Effect& out = *change.add_effects();
    out.set_where(effect.where);
    out.set_what(effect.what);
    out.set_unit(effect.unit);
    out.set_before(effect.before);
    out.set_after(effect.after);
  }
}

v1::DrainResult ToProto(const std::string& subject, const DrainResult& result) {
  size_t cpu_rows = 0;
  for (const ZoneDrain& zone : result.zones) cpu_rows += zone.by_cpu.size();
  v1::DrainResult out;
  out.set_cpus_omitted(cpu_rows > kMaxCpuDrains);
  for (const ZoneDrain& zone : result.zones) {
    v1::ZoneDrain& row = *out.add_zones();
    row.set_zone(ZoneName(subject, zone.node, zone.zone));
    row.set_pages_before(zone.pages_before);
    row.set_pages_after(zone.pages_after);
    row.set_lru_batch_pages(zone.lru_batch_pages);
    row.set_largest_free_order_before(zone.largest_free_order_before);
    row.set_largest_free_order_after(zone.largest_free_order_after);
    if (out.cpus_omitted()) continue;
    for (const auto& [cpu, pages] : zone.by_cpu) {
      if (pages == 0) continue;
      v1::CpuDrain& drained = *row.add_cpus();
      drained.set_cpu(cpu);
      drained.set_pages(pages);
    }
  }
  for (const std::string& text : result.not_drained) out.add_not_drained(text);
  return out;
}

}  // namespace memtuned
