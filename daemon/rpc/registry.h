// SPDX-License-Identifier: Apache-2.0
// The subjects a server serves, by name. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_REGISTRY_H_
#define MEMTUNED_DAEMON_RPC_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/stats.h"
#include "daemon/sampler.h"
#include "daemon/subject.h"

namespace memtuned {

// One subject and the sampler that watches it; neither is owned.
struct ServedSubject {
  Subject* subject = nullptr;
  Sampler* sampler = nullptr;
};

// Thread safety: immutable.
class Registry {
 public:
  // Sorted by name; names are unique.
  explicit Registry(std::vector<ServedSubject> subjects);

  const std::vector<ServedSubject>& subjects() const { return subjects_; }

  // Errors: kNotFound with ResourceInfo, listing what there is.
  absl::StatusOr<ServedSubject> Find(const std::string& name) const;

 private:
  std::vector<ServedSubject> subjects_;
};

// The latest sample; waits a little for the first one.
// Errors: kUnavailable (NO_SAMPLE) with RetryInfo.
// Blocks: up to `deadline`, at most 2 s.
absl::StatusOr<std::shared_ptr<const Snapshot>> LatestSample(
    const ServedSubject& served, SteadyTime deadline);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_REGISTRY_H_
