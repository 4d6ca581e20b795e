// SPDX-License-Identifier: Apache-2.0
// Numbers as tables show them.
#include "client/ctl/format.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace memtuned::ctl {
namespace {

const Formatter kPlain(Glyphs::Ascii());
const Formatter kThin(Glyphs::Utf8());

TEST(FormatTest, GroupsThousandsWithThinSpaces) {
  EXPECT_EQ(kThin.Count(0), "0");
  EXPECT_EQ(kThin.Count(999), "999");
  EXPECT_EQ(kThin.Count(48211), "48\u2009211");
  EXPECT_EQ(kThin.Count(1234567), "1\u2009234\u2009567");
  EXPECT_EQ(kThin.Count(-1234), "-1\u2009234");
  EXPECT_EQ(kThin.Count(-123), "-123");
  EXPECT_EQ(kThin.Decimal(12345.678, 1), "12\u2009345.7");
}

TEST(FormatTest, LeavesNumbersWholeWithoutUtf8) {
  EXPECT_EQ(kPlain.Count(1234567), "1234567");
  EXPECT_EQ(kPlain.Count(std::numeric_limits<int64_t>::min()),
            "-9223372036854775808");
}

TEST(FormatTest, BytesUseBinaryUnitsAndOneDecimal) {
  EXPECT_EQ(kPlain.Bytes(0), "0 B");
  EXPECT_EQ(kPlain.Bytes(1023), "1023 B");
  EXPECT_EQ(kPlain.Bytes(1024), "1.0 KiB");
  EXPECT_EQ(kPlain.Bytes(4096), "4.0 KiB");
  EXPECT_EQ(kPlain.Bytes(int64_t{256} << 30), "256.0 GiB");
  EXPECT_EQ(kPlain.Bytes(-(int64_t{3} << 20)), "-3.0 MiB");
  EXPECT_EQ(kPlain.Bytes(std::numeric_limits<int64_t>::max()), "8.0 EiB");
}

TEST(FormatTest, BytesNeverShow1024OfAUnit) {
  EXPECT_EQ(kPlain.Bytes((int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(kPlain.Bytes((int64_t{1} << 30) - 1), "1.0 GiB");
  EXPECT_EQ(kPlain.Bytes(1023 * 1024), "1023.0 KiB");
}

TEST(FormatTest, SecondsKeepThreePlaces) {
  EXPECT_EQ(kPlain.Seconds(0), "0 s");
  EXPECT_EQ(kPlain.Seconds(250e-9), "250 ns");
  EXPECT_EQ(kPlain.Seconds(1.5e-6), "1.50 us");
  EXPECT_EQ(kPlain.Seconds(0.0123), "12.3 ms");
  EXPECT_EQ(kPlain.Seconds(0.99999), "1.00 s");
  EXPECT_EQ(kPlain.Seconds(123), "123 s");
}

TEST(FormatTest, AgesGrowCoarser) {
  EXPECT_EQ(kPlain.Age(-0.2), "0.0 s");
  EXPECT_EQ(kPlain.Age(0.34), "0.3 s");
  EXPECT_EQ(kPlain.Age(12.4), "12 s");
  EXPECT_EQ(kPlain.Age(300), "5 min");
  EXPECT_EQ(kPlain.Age(3600 * 5), "5 h");
  EXPECT_EQ(kPlain.Age(86400 * 3), "3 d");
}

TEST(FormatTest, PercentHasOneDecimal) {
  EXPECT_EQ(kPlain.Percent(0.314), "31.4 %");
  EXPECT_EQ(kPlain.Percent(0), "0.0 %");
}

TEST(FormatTest, WidthCountsCharactersNotBytes) {
  EXPECT_EQ(DisplayWidth("48\u2009211"), 6);
  EXPECT_EQ(DisplayWidth("abc"), 3);
}

TEST(FormatTest, ShortensAtCharacterBoundaries) {
  EXPECT_EQ(Shorten("abcdef", 6, "\u2026"), "abcdef");
  EXPECT_EQ(Shorten("abcdef", 4, "\u2026"), "abc\u2026");
  EXPECT_EQ(Shorten("\u00e4\u00f6\u00fc\u00df", 3, "\u2026"),
            "\u00e4\u00f6\u2026");
}

TEST(FormatTest, NumberRangesMergeNeighbours) {
  EXPECT_EQ(NumberRanges({}), "-");
  EXPECT_EQ(NumberRanges({7}), "7");
  EXPECT_EQ(NumberRanges({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

TEST(FormatTest, ParsesDurations) {
  EXPECT_DOUBLE_EQ(*ParseSeconds("10s"), 10);
  EXPECT_DOUBLE_EQ(*ParseSeconds("300ms"), 0.3);
  EXPECT_DOUBLE_EQ(*ParseSeconds("2m"), 120);
  EXPECT_DOUBLE_EQ(*ParseSeconds("1.5"), 1.5);
  EXPECT_DOUBLE_EQ(*ParseSeconds("1h"), 3600);
}

TEST(FormatTest, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"", "s", "10 s", "10x", "abc", "1e999", "nan", "inf", "10ss"}) {
    EXPECT_EQ(ParseSeconds(text), std::nullopt) << text;
  }
}

TEST(FormatTest, GlyphsFollowTheFirstLocaleVariableThatIsSet) {
  setenv("LC_ALL", "", 1);
  setenv("LC_CTYPE", "de_DE.utf8", 1);
  setenv("LANG", "C", 1);
  EXPECT_STREQ(Glyphs::FromEnvironment().group, "\u2009");

  setenv("LC_ALL", "C", 1);
  EXPECT_STREQ(Glyphs::FromEnvironment().group, "");
}

}  // namespace
}  // namespace memtuned::ctl
