// SPDX-License-Identifier: Apache-2.0
// The RPC counters and their two families.
#include "daemon/metrics/rpc_metrics.h"

#include <limits>
#include <string_view>
#include <utility>

namespace memtuned {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr const char* kOther = "other";
constexpr size_t kMaxMethodLength = 80;
constexpr int kUnknownCode = 2;

constexpr std::array<const char*, kNumRpcCodes> kCodeNames = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED"};

constexpr std::array<double, kNumRpcBuckets> kBounds = {
    250e-6, 1e-3, 4e-3, 16e-3,
    64e-3,  0.25, 1,    std::numeric_limits<double>::infinity()};

bool IsMethodName(std::string_view name) {
  if (name.empty() || name.size() > kMaxMethodLength) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '_' && c != '.' && c != '/') return false;
  }
  return true;
}

MetricFamily Counter(const char* name, const char* help, uint64_t value) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = MetricType::Counter;
  family.metric.emplace_back();
  family.metric.back().counter.value = static_cast<double>(value);
  return family;
}

}  // namespace

RpcMetrics::Method& RpcMetrics::MethodOfLocked(const char* name) {
  if (name == nullptr || !IsMethodName(name)) return methods_[kOther];
  const auto found = methods_.find(name);
  if (found != methods_.end()) return found->second;
  // One place is kept for "other", present or not.
  const size_t named = methods_.size() - methods_.count(kOther);
  if (named + 1 >= kMaxRpcMethods) return methods_[kOther];
  return methods_[name];
}

void RpcMetrics::Observe(const char* method, int code, double seconds) {
  if (code < 0 || code >= kNumRpcCodes) code = kUnknownCode;
  if (!(seconds >= 0)) seconds = 0;
  size_t bucket = 0;
  while (seconds > kBounds[bucket]) ++bucket;

  const MutexLock lock(mutex_);
  Method& counts = MethodOfLocked(method);
  ++counts.by_code[code];
  ++counts.buckets[bucket];
  counts.seconds += seconds;
}

void RpcMetrics::WatchFellBehind() {
  const MutexLock lock(mutex_);
  ++fell_behind_;
}

void RpcMetrics::CallDenied() {
  const MutexLock lock(mutex_);
  ++denied_;
}

std::vector<MetricFamily> RpcMetrics::Collect() const {
  MetricFamily requests;
  requests.name = "memtuned_rpc_requests_total";
  requests.help = "Finished RPCs by method and status code.";
  requests.type = MetricType::Counter;
  MetricFamily durations;
  durations.name = "memtuned_rpc_duration_seconds";
  durations.help = "Time an RPC took in the daemon.";
  durations.type = MetricType::Histogram;

  const MutexLock lock(mutex_);
  for (const auto& [name, counts] : methods_) {
    for (int code = 0; code < kNumRpcCodes; ++code) {
      if (counts.by_code[code] == 0) continue;
      ClientMetric metric;
      metric.label = {{"method", name}, {"code", kCodeNames[code]}};
      metric.counter.value = static_cast<double>(counts.by_code[code]);
      requests.metric.push_back(std::move(metric));
    }
    ClientMetric metric;
    metric.label = {{"method", name}};
    metric.histogram.sample_sum = counts.seconds;
    for (int i = 0; i < kNumRpcBuckets; ++i) {
      metric.histogram.sample_count += counts.buckets[i];
      metric.histogram.bucket.push_back(
          {metric.histogram.sample_count, kBounds[i]});
    }
    durations.metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> families = {
      Counter("memtuned_watch_fell_behind_total",
              "Times a watcher was told that it missed snapshots.",
              fell_behind_),
      Counter("memtuned_denied_calls_total",
              "Calls refused for who made them: role missing, or unknown.",
              denied_)};
  if (!requests.metric.empty()) {
    families.push_back(std::move(requests));
    families.push_back(std::move(durations));
  }
  return families;
}

}  // namespace memtuned
