// SPDX-License-Identifier: Apache-2.0
// Lookup by name, and the error that says what could have been meant.
#include "daemon/rpc/registry.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/errors.h"

namespace memtuned {

Registry::Registry(std::vector<ServedSubject> subjects)
    : subjects_(std::move(subjects)) {
  std::sort(subjects_.begin(), subjects_.end(),
            [](const ServedSubject& a, const ServedSubject& b) {
              return a.subject->name() < b.subject->name();
            });
}

absl::StatusOr<ServedSubject> Registry::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const ServedSubject& served : subjects_) {
    if (served.subject->name() == name) return served;
    names.push_back(served.subject->name());
  }
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no subject ", Quoted(name),
                                       "; this daemon serves ", Listed(names))),
      "NOT_FOUND", {{"subject", name}, {"known", Listed(names)}});
}

absl::StatusOr<std::shared_ptr<const Snapshot>> LatestSample(
    const ServedSubject& served, SteadyTime deadline) {
  auto latest = served.sampler->Latest();
  if (latest) return latest;
  const SteadyTime soon =
      std::chrono::steady_clock::now() + std::chrono::seconds(2);
  served.sampler->Refresh(std::min(deadline, soon));
  latest = served.sampler->Latest();
  if (latest) return latest;
  const std::string error = served.sampler->last_error();
  return WithRetryAfter(
      WithReason(absl::UnavailableError(absl::StrCat(
                     "there is no sample of ", served.subject->name(), " yet",
                     error.empty() ? "" : ": ", error)),
                 "NO_SAMPLE", {{"subject", served.subject->name()}}),
      1.0);
}

}  // namespace memtuned
