// SPDX-License-Identifier: Apache-2.0
// TUNABLE=VALUE as typed.
#include "client/ctl/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/ctl/labels.h"
#include "core/tunables.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;

std::string RefusalOfText(const std::vector<std::string>& texts) {
  const auto parsed = ParseAssignments(texts);
  EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
  return std::string(parsed.status().message());
}

TEST(AssignmentTest, ReadsEachKindOfValue) {
  const auto parsed = ParseAssignments(
      {"pageset.batch_factor=2", "pageset.policy=fixed",
       "pageset.high_fraction=8", "watermark.min_free_kbytes=auto"});

  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ((*parsed)[0].tunable(), "pageset.batch_factor");
  EXPECT_DOUBLE_EQ((*parsed)[0].value().real(), 2);
  EXPECT_EQ((*parsed)[1].value().choice(), "fixed");
  EXPECT_EQ((*parsed)[2].value().integer(), 8);
  EXPECT_TRUE((*parsed)[3].value().has_auto_());
}

TEST(AssignmentTest, DefaultsOfTheTableAreAllowed) {
  for (const TunableDef& def : TunableTable()) {
    const auto parsed =
        ParseAssignments({std::string(def.name) + "=" + def.default_text});

    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(ValueText((*parsed)[0].value()),
              memtuned::ValueText(DefaultValue(def)));
  }
}

TEST(AssignmentTest, SaysTheRangeBeforeAnyCall) {
  EXPECT_EQ(RefusalOfText({"pageset.batch_factor=9"}),
            "pageset.batch_factor is 9; allowed 0.25 to 8");
}

TEST(AssignmentTest, SuggestsTheNearestTunable) {
  EXPECT_EQ(RefusalOfText({"pageset.batch_facto=2"}),
            "unknown tunable 'pageset.batch_facto'; did you mean "
            "'pageset.batch_factor'?");
  EXPECT_THAT(RefusalOfText({"scale_factor=2"}),
              HasSubstr("did you mean 'watermark.scale_factor'?"));
  EXPECT_THAT(RefusalOfText({"zzz=2"}), HasSubstr("see 'memtunectl tunables'"));
}

TEST(AssignmentTest, RefusesWhatIsNoAssignment) {
  EXPECT_THAT(RefusalOfText({"pageset.batch_factor"}),
              HasSubstr("TUNABLE=VALUE"));
  EXPECT_THAT(RefusalOfText({"=2"}), HasSubstr("TUNABLE=VALUE"));
}

TEST(AssignmentTest, RefusesATunableGivenTwice) {
  EXPECT_EQ(RefusalOfText({"pageset.batch_factor=2", "pageset.batch_factor=3"}),
            "pageset.batch_factor is given twice; allowed once");
}

TEST(LimitTest, ReadsBytesWithAndWithoutUnits) {
  EXPECT_EQ(ParseLimit("8192")->integer(), 8192);
  EXPECT_EQ(ParseLimit("4KiB")->integer(), 4096);
  EXPECT_EQ(ParseLimit("3GiB")->integer(), int64_t{3} << 30);
  EXPECT_EQ(ParseLimit("none")->integer(), 0);
  EXPECT_EQ(ParseLimit("0")->integer(), 0);
  EXPECT_TRUE(ParseLimit("auto")->has_auto_());
}

TEST(LimitTest, SaysWhatIsAllowed) {
  for (const char* text : {"", "1", "4095", "-1", "1.5GiB", "MiB", "16TiB",
                           "99999999999999999999", "8388608TiB", "4 KiB"}) {
    const auto parsed = ParseLimit(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(std::string(parsed.status().message()),
              "limit is '" + std::string(text) +
                  "'; allowed none, auto or 0 or 4096 to 17592186040320 "
                  "bytes, as in 512MiB");
  }
}

}  // namespace
}  // namespace memtuned::ctl
