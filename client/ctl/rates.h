// SPDX-License-Identifier: Apache-2.0
// Counters of a zone and what they say between two samples.
#ifndef MEMTUNED_CLIENT_CTL_RATES_H_
#define MEMTUNED_CLIENT_CTL_RATES_H_

#include <google/protobuf/timestamp.pb.h>
#include <memtuned/v1/stats.pb.h>

#include <cstdint>
#include <string>

#include "client/ctl/format.h"

namespace memtuned::ctl {

// What only grows in one zone. Differences of two samples use the same type.
struct ZoneCounters {
  int64_t refills = 0, refilled_pages = 0;
  int64_t flushes = 0, flushed_pages = 0;
  int64_t blocks = 0;  // allocated and freed, of any order
  int64_t lock_acquisitions = 0, lock_contended = 0;
};

ZoneCounters CountersOf(const v1::Zone& zone);
// What was added since `before`; a counter that shrank (a new pool under the
// same name) counts from zero.
ZoneCounters Since(const ZoneCounters& before, const ZoneCounters& now);

// `part` for each `whole` with two places, "-" where whole is 0.
std::string Ratio(int64_t part, int64_t whole, const Formatter& format);

// Seconds from `before` to `now`.
double SecondsBetween(const google::protobuf::Timestamp& before,
                      const google::protobuf::Timestamp& now);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_RATES_H_
