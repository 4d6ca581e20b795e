// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/change_audit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/convert.h"

namespace memtuned {
namespace {

// "pageset.batch_factor=1, ..."; a machine of many zones is cut short.
class BeforeAndAfter {
 public:
  void Add(const std::string& what, const std::string& before,
           const std::string& after) {
    if (++count_ > kMaxShown) return;
    const char* comma = count_ > 1 ? ", " : "";
    absl::StrAppend(&before_, comma, what, "=", before);
    absl::StrAppend(&after_, comma, what, "=", after);
  }

  LogFields Fields(const v1::Change& change) && {
    if (count_ > kMaxShown) {
      const std::string more =
          absl::StrCat(", and ", count_ - kMaxShown, " more");
      before_ += more;
      after_ += more;
    }
    return {{"generation", absl::StrCat(change.generation())},
            {"before", before_},
            {"after", after_}};
  }

 private:
  static constexpr int kMaxShown = 64;

  int count_ = 0;
  std::string before_, after_;
};

std::string TextOf(const v1::Value& value) {
  return ValueText(FromProto(value).value_or(AutoValue{}));
}

LogFields ScopedValues(const v1::Change& change) {
  BeforeAndAfter both;
  for (const v1::ValueChange& value : change.values()) {
    both.Add(absl::StrCat(value.scope(), " ", value.tunable()),
             TextOf(value.before()), TextOf(value.after()));
  }
  return std::move(both).Fields(change);
}

}  // namespace

LogFields AuditFieldsOf(const v1::SetTunablesResponse& response) {
  BeforeAndAfter both;
  for (const v1::ValueChange& value : response.change().values()) {
    both.Add(value.tunable(), TextOf(value.before()), TextOf(value.after()));
  }
  return std::move(both).Fields(response.change());
}

LogFields AuditFieldsOf(const v1::SetProcessLimitResponse& response) {
  return ScopedValues(response.change());
}

LogFields AuditFieldsOf(const v1::SetMemsAllowedResponse& response) {
  return ScopedValues(response.change());
}

LogFields AuditFieldsOf(const v1::RecalculateResponse& response) {
  BeforeAndAfter both;
  for (const v1::Effect& effect : response.change().effects()) {
    both.Add(absl::StrCat(effect.where(), " ", effect.what()),
             absl::StrCat(effect.before()), absl::StrCat(effect.after()));
  }
  return std::move(both).Fields(response.change());
}

LogFields AuditFieldsOf(const v1::DrainResponse& response) {
  BeforeAndAfter both;
  for (const v1::ZoneDrain& zone : response.result().zones()) {
    both.Add(absl::StrCat(zone.zone(), " pages"),
             absl::StrCat(zone.pages_before()),
             absl::StrCat(zone.pages_after()));
  }
  return std::move(both).Fields(response.change());
}

}  // namespace memtuned
