// SPDX-License-Identifier: Apache-2.0
// Counters between two samples.
#include "client/ctl/rates.h"

#include <gtest/gtest.h>

namespace memtuned::ctl {
namespace {

TEST(RatesTest, SumsFlushesAndBlocksOverCausesAndOrders) {
  v1::Zone zone;
  zone.mutable_flows()->set_refills(3);
  for (const int64_t count : {2, 5}) {
    zone.mutable_flows()->add_flushes()->set_flushes(count);
    auto* order = zone.mutable_flows()->add_orders();
    order->set_allocations(count);
    order->set_frees(1);
  }
  zone.mutable_zone_lock()->set_acquisitions(11);

  const ZoneCounters counters = CountersOf(zone);

  EXPECT_EQ(counters.refills, 3);
  EXPECT_EQ(counters.flushes, 7);
  EXPECT_EQ(counters.blocks, 9);
  EXPECT_EQ(counters.lock_acquisitions, 11);
}

TEST(RatesTest, CountersThatShrankStartAgain) {
  ZoneCounters before, now;
  before.refills = 100;
  now.refills = 30;
  before.flushes = 1;
  now.flushes = 4;

  const ZoneCounters grown = Since(before, now);

  EXPECT_EQ(grown.refills, 30);
  EXPECT_EQ(grown.flushes, 3);
}

TEST(RatesTest, NothingPerNothingIsAbsent) {
  const Formatter plain(Glyphs::Ascii());

  EXPECT_EQ(Ratio(5, 0, plain), "-");
  EXPECT_EQ(Ratio(63, 9, plain), "7.00");
}

TEST(RatesTest, SecondsCountFractions) {
  google::protobuf::Timestamp before, now;
  before.set_seconds(10);
  before.set_nanos(500000000);
  now.set_seconds(12);

  EXPECT_DOUBLE_EQ(SecondsBetween(before, now), 1.5);
}

}  // namespace
}  // namespace memtuned::ctl
