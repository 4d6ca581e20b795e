// SPDX-License-Identifier: Apache-2.0
// Two families, a row for each kind.
#include "daemon/metrics/certificate_metrics.h"

#include <chrono>

namespace memtuned {

std::vector<prometheus::MetricFamily> CertificateMetrics::Collect() const {
  prometheus::MetricFamily expiry;
  expiry.name = "memtuned_certificate_expiry_timestamp_seconds";
  expiry.help = "When the first certificate in use of that kind expires.";
  expiry.type = prometheus::MetricType::Gauge;
  prometheus::MetricFamily failures;
  failures.name = "memtuned_certificate_reload_failures_total";
  failures.help = "Changed certificates that were refused.";
  failures.type = prometheus::MetricType::Counter;
  for (const CertificateFigures& figures : source_()) {
    prometheus::ClientMetric metric;
    metric.label = {{"kind", figures.kind}};
    metric.gauge.value =
        std::chrono::duration<double>(figures.expiry.time_since_epoch())
            .count();
    expiry.metric.push_back(metric);
    metric.gauge.value = 0;
    metric.counter.value = static_cast<double>(figures.reload_failures);
    failures.metric.push_back(metric);
  }
  return {expiry, failures};
}

}  // namespace memtuned
