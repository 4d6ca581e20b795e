// SPDX-License-Identifier: Apache-2.0
// Counts finished RPCs by method and code, their durations, watchers that
// fell behind, and calls denied. Floor 4.
#ifndef MEMTUNED_DAEMON_METRICS_RPC_METRICS_H_
#define MEMTUNED_DAEMON_METRICS_RPC_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "daemon/rpc/rpc_observer.h"

namespace memtuned {

inline constexpr int kNumRpcCodes = 17;       // OK 0 .. UNAUTHENTICATED 16
inline constexpr int kNumRpcBuckets = 8;      // the last is +Inf
inline constexpr size_t kMaxRpcMethods = 17;  // "other" included

// Invariants: the number of series is bounded whatever callers do: at most
// kMaxRpcMethods methods, all further or oddly spelled ones count as "other".
// Thread safety: any thread.
class RpcMetrics : public RpcObserver, public prometheus::Collectable {
 public:
  void Observe(const char* method, int code, double seconds) override;
  void WatchFellBehind() override;
  void CallDenied() override;

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Method {
    std::array<uint64_t, kNumRpcCodes> by_code{};
    std::array<uint64_t, kNumRpcBuckets> buckets{};  // not cumulative
    double seconds = 0;
  };

  Method& MethodOfLocked(const char* name) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Method> methods_ GUARDED_BY(mutex_);
  uint64_t fell_behind_ GUARDED_BY(mutex_) = 0;
  uint64_t denied_ GUARDED_BY(mutex_) = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_METRICS_RPC_METRICS_H_
