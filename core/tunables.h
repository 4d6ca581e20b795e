// SPDX-License-Identifier: Apache-2.0
// The table of tunables: every value an operator may change while a subject
// runs. RPC validation, `memtunectl tunables`, completion, the
// memtuned_tunable_value metric and the README's reference come from it.
// Floor 2; knows nothing of RPC.
#ifndef MEMTUNED_CORE_TUNABLES_H_
#define MEMTUNED_CORE_TUNABLES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"

namespace memtuned {

// Index of a pool tunable; also its index in the segment's tunables block.
// Append only: the order is part of the segment's layout.
enum class TunableId : uint32_t {
  kPagesetPolicy,
  kPagesetBatchFactor,
  kPagesetFreeHighFactor,
  kPagesetHighFraction,
  kDepotHighFraction,
  kWatermarkMinFreeKbytes,
  kWatermarkScaleFactor,
  kInitSectionsPerSecond,
  kProcessMaxBytes,
  kCount,
};
inline constexpr int kNumTunables = static_cast<int>(TunableId::kCount);

// "auto": the subject computes the value itself.
struct AutoValue {
  bool operator==(const AutoValue&) const = default;
};
using TunableValue =
    std::variant<AutoValue, int64_t, double, bool, std::string>;

enum class TunableKind { kInteger, kReal, kChoice, kFlag };

// One row of the table.
struct TunableDef {
  TunableId id;
  const char* name;         // "pageset.batch_factor"
  const char* kernel_name;  // "" where the kernel has no such thing
  const char* unit;         // "", "pages", "KiB", "1/s" ...
  TunableKind kind;
  double min, max;                       // inclusive; integers and reals
  bool zero_allowed;                     // 0 is valid although min is above it
  bool auto_allowed;                     // "auto" is a value
  const char* default_text;              // as a user would type it
  std::span<const char* const> choices;  // kChoice only
  const char* help;  // one sentence: effect, when it takes effect
};

// All rows, in TunableId order.
std::span<const TunableDef> TunableTable();
const TunableDef& GetTunable(TunableId id);
// nullptr when there is no such tunable.
const TunableDef* FindTunable(std::string_view name);

// Parses text as a user types it ("2", "0.5", "auto", "memtuned").
// Errors: kInvalidArgument "pageset.batch_factor is 9; allowed 0.25 to 8".
absl::StatusOr<TunableValue> ParseTunable(const TunableDef& def,
                                          std::string_view text);
// Checks kind and range; an integer is accepted for a real.
// Returns: the value in the row's own kind.
absl::StatusOr<TunableValue> CheckTunable(const TunableDef& def,
                                          const TunableValue& value);
TunableValue DefaultValue(const TunableDef& def);
// "0.25 to 8", "0 or 8 to 2147483647", "auto or 0 to 16777216", "fixed, ..."
std::string AllowedText(const TunableDef& def);
std::string ValueText(const TunableValue& value);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_TUNABLES_H_
