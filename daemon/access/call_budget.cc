// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/call_budget.h"

#include <algorithm>
#include <utility>

namespace memtuned {

CallBudget::Bucket& CallBudget::BucketLocked(const std::string& caller,
                                             Time now) {
  const auto found = by_caller_.find(caller);
  if (found != by_caller_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, found->second);
    return buckets_.front();
  }
  if (buckets_.size() == kMaxCallers) {
    by_caller_.erase(buckets_.back().caller);
    buckets_.pop_back();
  }
  buckets_.push_front({caller, static_cast<double>(per_minute_), now});
  by_caller_[caller] = buckets_.begin();
  return buckets_.front();
}

CallBudget::Answer CallBudget::Take(const std::string& caller, Time now) {
  MutexLock lock(mutex_);
  Bucket& bucket = BucketLocked(caller, now);
  const double per_second = per_minute_ / 60.0;
  const std::chrono::duration<double> passed = now - bucket.filled;
  bucket.tokens = std::min<double>(per_minute_,
                                   bucket.tokens + passed.count() * per_second);
  bucket.filled = now;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return {0, std::exchange(bucket.refused, 0)};
  }
  return {(1 - bucket.tokens) / per_second, ++bucket.refused};
}

void CallBudget::SetPerMinute(int per_minute) {
  MutexLock lock(mutex_);
  per_minute_ = per_minute;
}

}  // namespace memtuned
