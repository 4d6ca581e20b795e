// SPDX-License-Identifier: Apache-2.0
// Short words for messages.
#include "client/ctl/labels.h"

#include <gtest/gtest.h>

namespace memtuned::ctl {
namespace {

TEST(LabelsTest, ZoneLabelsComeFromResourceNames) {
  EXPECT_EQ(ZoneLabel("pools/default/nodes/1000/zones/Normal"), "1000/Normal");
  EXPECT_EQ(ZoneLabel("pools/nodes/nodes/3/zones/DMA/pagesets/7"), "3/DMA");
  EXPECT_EQ(ZoneLabel("nodes/0/zones/Normal"), "0/Normal");
  EXPECT_EQ(ZoneLabel("nodes/4"), "4");
  EXPECT_EQ(ZoneLabel("all zones"), "all zones");
  EXPECT_EQ(ZoneLabel(""), "");
}

TEST(LabelsTest, LastPartOfANameWithoutSlashIsTheName) {
  EXPECT_EQ(LastPart("pools/default/processes/3-17"), "3-17");
  EXPECT_EQ(LastPart("x"), "x");
}

TEST(LabelsTest, InitialisingZonesShowHowFarTheyAre) {
  v1::Zone zone;
  zone.set_state(v1::ZONE_STATE_INITIALISING);
  zone.set_managed_bytes(1 << 20);
  zone.set_present_bytes(100 << 20);
  const Formatter plain(Glyphs::Ascii());

  EXPECT_EQ(ZoneStateCell(zone, plain).text, "initialising 1.0 %");
  zone.set_present_bytes(0);
  EXPECT_EQ(ZoneStateCell(zone, plain).text, "initialising 0.0 %");
}

TEST(LabelsTest, StaleLimitsShowWhatIsExpected) {
  v1::LimitsCheck limits;
  EXPECT_EQ(LimitsCell(limits).text, "-");
  limits.set_state(v1::LIMITS_STATE_STALE);
  limits.set_expected_batch(63);
  limits.set_expected_high_min(378);
  limits.set_expected_high_max(378);

  EXPECT_EQ(LimitsCell(limits).text, "stale: expected 63/378");
}

TEST(LabelsTest, ValuesSurviveTheWayToTheProto) {
  for (const TunableValue& value :
       {TunableValue(AutoValue()), TunableValue(int64_t{-3}),
        TunableValue(0.25), TunableValue(true),
        TunableValue(std::string("fixed"))}) {
    EXPECT_EQ(ValueText(ToProto(value)), memtuned::ValueText(value));
  }
  EXPECT_EQ(ValueText(v1::Value()), "-");
}

TEST(LabelsTest, EqualBoundsAreOneNumber) {
  EXPECT_EQ(RangeText(378, 378), "378");
  EXPECT_EQ(RangeText(614, 65536), "614..65536");
}

}  // namespace
}  // namespace memtuned::ctl
