// SPDX-License-Identifier: Apache-2.0
// Shows until when the certificates in use are valid, and refused reloads.
// Floor 4; knows no TLS.
#ifndef MEMTUNED_DAEMON_METRICS_CERTIFICATE_METRICS_H_
#define MEMTUNED_DAEMON_METRICS_CERTIFICATE_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <utility>
#include <vector>

#include "daemon/metrics/metrics_server.h"

namespace memtuned {

// Thread safety: that of the source.
class CertificateMetrics : public prometheus::Collectable {
 public:
  explicit CertificateMetrics(
      std::function<std::vector<CertificateFigures>()> source)
      : source_(std::move(source)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::function<std::vector<CertificateFigures>()> source_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_METRICS_CERTIFICATE_METRICS_H_
