// SPDX-License-Identifier: Apache-2.0
// Implementation of rates.h.
#include "client/ctl/rates.h"

#include <google/protobuf/util/time_util.h>

namespace memtuned::ctl {
namespace {

int64_t Grown(int64_t before, int64_t now) {
  return now < before ? now : now - before;
}

}  // namespace

ZoneCounters CountersOf(const v1::Zone& zone) {
  ZoneCounters counters;
  counters.refills = zone.flows().refills();
  counters.refilled_pages = zone.flows().refilled_pages();
  for (const v1::FlushCount& flush : zone.flows().flushes()) {
    counters.flushes += flush.flushes();
    counters.flushed_pages += flush.pages();
  }
  for (const v1::OrderCount& order : zone.flows().orders()) {
    counters.blocks += order.allocations() + order.frees();
  }
  counters.lock_acquisitions = zone.zone_lock().acquisitions();
  counters.lock_contended = zone.zone_lock().contended();
  return counters;
}

ZoneCounters Since(const ZoneCounters& before, const ZoneCounters& now) {
  ZoneCounters grown;
  grown.refills = Grown(before.refills, now.refills);
  grown.refilled_pages = Grown(before.refilled_pages, now.refilled_pages);
  grown.flushes = Grown(before.flushes, now.flushes);
  grown.flushed_pages = Grown(before.flushed_pages, now.flushed_pages);
  grown.blocks = Grown(before.blocks, now.blocks);
  grown.lock_acquisitions =
      Grown(before.lock_acquisitions, now.lock_acquisitions);
  grown.lock_contended = Grown(before.lock_contended, now.lock_contended);
  return grown;
}

std::string Ratio(int64_t part, int64_t whole, const Formatter& format) {
  if (whole <= 0) return kAbsent;
  return format.Decimal(static_cast<double>(part) / static_cast<double>(whole),
                        2);
}

double SecondsBetween(const google::protobuf::Timestamp& before,
                      const google::protobuf::Timestamp& now) {
  using google::protobuf::util::TimeUtil;
  return static_cast<double>(TimeUtil::TimestampToMicroseconds(now) -
                             TimeUtil::TimestampToMicroseconds(before)) /
         1e6;
}

}  // namespace memtuned::ctl
