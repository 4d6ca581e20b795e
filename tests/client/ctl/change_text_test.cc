// SPDX-License-Identifier: Apache-2.0
// Changes as text.
#include "client/ctl/change_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtuned::ctl {
namespace {

using ::testing::ElementsAre;

const Formatter kAscii(Glyphs::Ascii());

void AddEffect(v1::Change& change, int node, const char* what, const char* unit,
               int64_t before, int64_t after) {
  v1::Effect& effect = *change.add_effects();
  effect.set_where("nodes/" + std::to_string(node) + "/zones/Normal");
  effect.set_what(what);
  effect.set_unit(unit);
  effect.set_before(before);
  effect.set_after(after);
}

TEST(ChangeTextTest, ShowsValuesAndGroupsEqualEffects) {
  v1::Change change;
  v1::ValueChange& value = *change.add_values();
  value.set_tunable("pageset.batch_factor");
  value.mutable_before()->set_real(1);
  value.mutable_requested()->set_real(2);
  value.mutable_after()->set_real(2);
  AddEffect(change, 0, "batch", "pages", 63, 126);
  AddEffect(change, 1, "batch", "pages", 63, 126);
  AddEffect(change, 1, "watermark low", "bytes", 1 << 20, 3 << 20);

  EXPECT_THAT(ChangeLines(change, kAscii, false),
              ElementsAre("  pageset.batch_factor  1 -> 2",
                          "effects     0/Normal, 1/Normal batch  63 -> 126 "
                          "pages",
                          "            1/Normal watermark low    1.0 MiB -> "
                          "3.0 MiB"));
}

TEST(ChangeTextTest, SaysWhatWasAskedForWhenItDiffers) {
  v1::Change change;
  v1::ValueChange& value = *change.add_values();
  value.set_tunable("x");
  value.mutable_before()->mutable_auto_();
  value.mutable_requested()->set_integer(3);
  value.mutable_after()->set_integer(4);

  EXPECT_EQ(ChangeLines(change, kAscii, false)[0],
            "  x  auto -> 4  (asked for 3)");
}

TEST(ChangeTextTest, NamesFourZonesAndCountsTheRest) {
  v1::Change change;
  for (int node = 0; node < 6; ++node) {
    AddEffect(change, node, "batch", "pages", 7, 63);
  }

  EXPECT_THAT(ChangeLines(change, kAscii, false),
              ElementsAre("effects     0/Normal, 1/Normal, 2/Normal, 3/Normal "
                          "and 2 more batch  7 -> 63 pages"));
  EXPECT_THAT(ChangeLines(change, kAscii, true)[0],
              ::testing::HasSubstr("4/Normal, 5/Normal batch"));
}

TEST(ChangeTextTest, SaysWhenNothingMoves) {
  v1::Change change;
  change.set_kind(v1::CHANGE_KIND_RECALCULATE);

  EXPECT_THAT(ChangeLines(change, kAscii, false),
              ElementsAre("effects     none: no limit and no watermark moves"));
}

TEST(ChangeTextTest, HeadingTellsPlansFromDeeds) {
  v1::Change change;
  change.set_generation(3);
  change.set_etag("3-a");
  change.set_state(v1::CHANGE_STATE_PLANNED);
  EXPECT_THAT(ChangeParts(change), ElementsAre("plan only, nothing changed",
                                               "generation 3", "etag \"3-a\""));

  change.set_state(v1::CHANGE_STATE_APPLIED);
  EXPECT_EQ(ChangeParts(change)[0], "applied");
  change.set_state(v1::CHANGE_STATE_PARTIAL);
  EXPECT_EQ(ChangeParts(change)[0], "applied in part");
}

TEST(ChangeTextTest, ShowsRisksWithTheirIds) {
  v1::Change change;
  v1::Risk& risk = *change.add_risks();
  risk.set_id("host-limits-lowered");
  risk.set_severity("warning");
  risk.set_sentence("limits are low for a while");
  risk.set_instead("wait");

  const auto lines = ChangeLines(change, kAscii, false);

  EXPECT_EQ(lines[1],
            "risk        host-limits-lowered (warning): limits are low for a "
            "while");
  EXPECT_EQ(lines[2], "            instead: wait");
}

}  // namespace
}  // namespace memtuned::ctl
