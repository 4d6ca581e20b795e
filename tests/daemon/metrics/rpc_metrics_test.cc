// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics/rpc_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace memtuned {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

MetricFamily Family(const RpcMetrics& metrics, const std::string& name) {
  for (MetricFamily& family : metrics.Collect()) {
    if (family.name == name) return family;
  }
  return {};
}

// "method code" of each counter.
std::map<std::string, double> Requests(const RpcMetrics& metrics) {
  std::map<std::string, double> requests;
  for (const ClientMetric& metric :
       Family(metrics, "memtuned_rpc_requests_total").metric) {
    requests[metric.label[0].value + " " + metric.label[1].value] =
        metric.counter.value;
  }
  return requests;
}

TEST(RpcMetricsTest, CountsByMethodAndCode) {
  RpcMetrics metrics;

  metrics.Observe("TuningService/Drain", 0, 0.001);
  metrics.Observe("TuningService/Drain", 0, 0.001);
  metrics.Observe("TuningService/Drain", 3, 0.001);

  const auto requests = Requests(metrics);
  EXPECT_EQ(requests.at("TuningService/Drain OK"), 2);
  EXPECT_EQ(requests.at("TuningService/Drain INVALID_ARGUMENT"), 1);
  EXPECT_EQ(requests.size(), 2u);
}

TEST(RpcMetricsTest, DurationsAreCumulativeUpToInfinity) {
  RpcMetrics metrics;

  metrics.Observe("StatsService/ListZones", 0, 0.0001);
  metrics.Observe("StatsService/ListZones", 0, 0.1);
  metrics.Observe("StatsService/ListZones", 0, 1e9);

  const auto family = Family(metrics, "memtuned_rpc_duration_seconds");
  ASSERT_EQ(family.metric.size(), 1u);
  const auto& histogram = family.metric[0].histogram;
  EXPECT_EQ(histogram.sample_count, 3u);
  EXPECT_DOUBLE_EQ(histogram.sample_sum, 1e9 + 0.1001);
  EXPECT_EQ(histogram.bucket.front().cumulative_count, 1u);
  EXPECT_EQ(histogram.bucket.back().cumulative_count, 3u);
  EXPECT_TRUE(std::isinf(histogram.bucket.back().upper_bound));
}

TEST(RpcMetricsTest, OddNamesAndCodesCountAsOther) {
  RpcMetrics metrics;
  const std::string long_name(1000, 'a');

  metrics.Observe("\"} 1\nx", 0, 0);
  metrics.Observe("", 0, 0);
  metrics.Observe(nullptr, 0, 0);
  metrics.Observe(long_name.c_str(), 0, 0);
  metrics.Observe("A/B", 99, -1);
  metrics.Observe("A/B", -1, std::numeric_limits<double>::quiet_NaN());

  const auto requests = Requests(metrics);
  EXPECT_EQ(requests.at("other OK"), 4);
  EXPECT_EQ(requests.at("A/B UNKNOWN"), 2);
}

TEST(RpcMetricsTest, SeriesAreBoundedWhateverIsCalled) {
  RpcMetrics metrics;

  for (int i = 0; i < 100000; ++i) {
    metrics.Observe(("Service/M" + std::to_string(i)).c_str(), i % 17, 0.01);
  }

  const auto durations = Family(metrics, "memtuned_rpc_duration_seconds");
  EXPECT_EQ(durations.metric.size(), kMaxRpcMethods);
  EXPECT_LE(Requests(metrics).size(), kMaxRpcMethods * kNumRpcCodes);
}

TEST(RpcMetricsTest, CountsWatchersThatFellBehind) {
  RpcMetrics metrics;

  metrics.WatchFellBehind();
  metrics.WatchFellBehind();

  EXPECT_EQ(Family(metrics, "memtuned_watch_fell_behind_total")
                .metric.at(0)
                .counter.value,
            2);
}

TEST(RpcMetricsTest, CountsDeniedCalls) {
  RpcMetrics metrics;

  metrics.CallDenied();

  EXPECT_EQ(
      Family(metrics, "memtuned_denied_calls_total").metric.at(0).counter.value,
      1);
}

TEST(RpcMetricsTest, LosesNothingUnderThreads) {
  RpcMetrics metrics;
  std::vector<std::thread> threads;

  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&metrics] {
      for (int n = 0; n < 1000; ++n) metrics.Observe("A/B", 0, 0.01);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(Requests(metrics).at("A/B OK"), 4000);
}

}  // namespace
}  // namespace memtuned
