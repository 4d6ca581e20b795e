// SPDX-License-Identifier: Apache-2.0
// How many mutating calls a caller may make: a token bucket each. Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_CALL_BUDGET_H_
#define MEMTUNED_DAEMON_ACCESS_CALL_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "core/base/mutex.h"

namespace memtuned {

// A bucket holds a minute's worth, and fills evenly within a minute.
// Invariants: at most kMaxCallers buckets; the one not asked for longest goes
// first.
// Thread safety: any thread.
class CallBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kMaxCallers = 1024;

  struct Answer {
    // 0: the call may go on. Else when to try again.
    double wait_seconds = 0;
    // Calls in a row that had to wait: this one and those before it, or, when
    // it may go on, those before it.
    int64_t refused = 0;
  };

  explicit CallBudget(int per_minute) : per_minute_(per_minute) {}

  Answer Take(const std::string& caller, Time now) EXCLUDES(mutex_);
  void SetPerMinute(int per_minute) EXCLUDES(mutex_);

 private:
  struct Bucket {
    std::string caller;
    double tokens;
    Time filled;  // when tokens was right
    int64_t refused = 0;
  };

  Bucket& BucketLocked(const std::string& caller, Time now) REQUIRES(mutex_);

  Mutex mutex_;
  int per_minute_ GUARDED_BY(mutex_);
  std::list<Bucket> buckets_ GUARDED_BY(mutex_);  // asked for last: first
  std::unordered_map<std::string, std::list<Bucket>::iterator> by_caller_
      GUARDED_BY(mutex_);
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_CALL_BUDGET_H_
