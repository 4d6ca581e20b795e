// SPDX-License-Identifier: Apache-2.0
// The table of tunables: its rows, and what its parser takes and refuses.
#include "core/tunables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace memtuned {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<TunableValue> Parse(TunableId id, std::string_view text) {
  return ParseTunable(GetTunable(id), text);
}

std::string Message(const absl::StatusOr<TunableValue>& result) {
  return std::string(result.status().message());
}

TEST(TunableTableTest, StandsInIdOrderWithUniqueDottedNames) {
  std::set<std::string> names;
  int position = 0;
  for (const TunableDef& def : TunableTable()) {
    EXPECT_EQ(static_cast<int>(def.id), position++) << def.name;
    EXPECT_TRUE(names.insert(def.name).second) << def.name;
    EXPECT_THAT(def.name, HasSubstr("."));
    EXPECT_EQ(FindTunable(def.name), &def);
    EXPECT_EQ(&GetTunable(def.id), &def);
  }
  EXPECT_EQ(position, kNumTunables);
}

TEST(TunableTableTest, DefaultsAreAllowedAndPrintAsWritten) {
  for (const TunableDef& def : TunableTable()) {
    const auto value = ParseTunable(def, def.default_text);

    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(ValueText(DefaultValue(def)), def.default_text);
    EXPECT_TRUE(CheckTunable(def, *value).ok()) << def.name;
  }
}

TEST(TunableTableTest, HelpIsOneSentenceAndSaysWhen) {
  for (const TunableDef& def : TunableTable()) {
    const std::string help = def.help;
    EXPECT_EQ(help.back(), '.') << def.name;
    EXPECT_EQ(help.find(". "), std::string::npos) << def.name;
    EXPECT_THAT(help, ::testing::MatchesRegex(".*(at the next|at once).*"))
        << def.name;
  }
}

TEST(TunableTableTest, KnowsNoOtherNames) {
  EXPECT_EQ(FindTunable(""), nullptr);
  EXPECT_EQ(FindTunable("pageset"), nullptr);
  EXPECT_EQ(FindTunable("pageset.batch_factor "), nullptr);
  EXPECT_EQ(FindTunable(std::string_view("pageset.policy\0", 15)), nullptr);
}

TEST(ParseTunableTest, ReadsEachKindInItsOwnType) {
  EXPECT_EQ(*Parse(TunableId::kPagesetPolicy, "adaptive-high"),
            TunableValue(std::string("adaptive-high")));
  EXPECT_EQ(*Parse(TunableId::kPagesetBatchFactor, "2"), TunableValue(2.0));
  EXPECT_EQ(*Parse(TunableId::kPagesetBatchFactor, "0.25"), TunableValue(0.25));
  EXPECT_EQ(*Parse(TunableId::kWatermarkScaleFactor, "3000"),
            TunableValue(int64_t{3000}));
  EXPECT_EQ(*Parse(TunableId::kWatermarkMinFreeKbytes, "auto"),
            TunableValue(AutoValue{}));
}

TEST(ParseTunableTest, RefusalNamesTunableValueAndRange) {
  EXPECT_EQ(Message(Parse(TunableId::kPagesetBatchFactor, "9")),
            "pageset.batch_factor is 9; allowed 0.25 to 8");
  EXPECT_EQ(Message(Parse(TunableId::kPagesetHighFraction, "7")),
            "pageset.high_fraction is 7; allowed 0 or 8 to 2147483647 "
            "(integer)");
  EXPECT_EQ(Message(Parse(TunableId::kWatermarkMinFreeKbytes, "-1")),
            "watermark.min_free_kbytes is -1; allowed auto or 0 to 67108864 "
            "(integer)");
  EXPECT_EQ(Message(Parse(TunableId::kPagesetPolicy, "fast")),
            "pageset.policy is fast; allowed fixed, watermark, adaptive, "
            "adaptive-high, memtuned");
}

TEST(ParseTunableTest, EdgesOfEveryRangeAreInside) {
  EXPECT_TRUE(Parse(TunableId::kPagesetHighFraction, "0").ok());
  EXPECT_TRUE(Parse(TunableId::kPagesetHighFraction, "8").ok());
  EXPECT_TRUE(Parse(TunableId::kPagesetHighFraction, "2147483647").ok());
  EXPECT_FALSE(Parse(TunableId::kPagesetHighFraction, "2147483648").ok());
  EXPECT_FALSE(Parse(TunableId::kPagesetBatchFactor, "0").ok());
  EXPECT_FALSE(Parse(TunableId::kPagesetBatchFactor, "8.0000001").ok());
  EXPECT_TRUE(Parse(TunableId::kDepotHighFraction, "1000000").ok());
  EXPECT_FALSE(Parse(TunableId::kDepotHighFraction, "1").ok());
  EXPECT_TRUE(Parse(TunableId::kInitSectionsPerSecond, "0").ok());
  EXPECT_FALSE(Parse(TunableId::kInitSectionsPerSecond, "1000001").ok());
}

class BadNumberTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BadNumberTest, IsRefusedByRealsAndIntegers) {
  for (const TunableId id :
       {TunableId::kPagesetBatchFactor, TunableId::kPagesetFreeHighFactor,
        TunableId::kWatermarkScaleFactor, TunableId::kPagesetHighFraction,
        TunableId::kInitSectionsPerSecond}) {
    const auto value = Parse(id, GetParam());
    EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(value), HasSubstr(GetTunable(id).name));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadNumberTest,
    ::testing::Values("", " ", "nan", "NaN", "-nan", "inf", "-inf", "INFINITY",
                      "1e999", "-1e999", "1e-999", "99999999999999999999999",
                      "-9223372036854775809", " 2", "2 ", "2\n", "\t2", "2,0",
                      "1,5", "+2", "0x2", "2x", "2 3", "two", "--2", "auto",
                      "1e", ".", "2\xff", std::string("2\0", 2)));

TEST(ParseTunableTest, IntegersTakeNoFractionOrExponent) {
  EXPECT_FALSE(Parse(TunableId::kWatermarkScaleFactor, "2.0").ok());
  EXPECT_FALSE(Parse(TunableId::kWatermarkScaleFactor, "1e2").ok());
}

TEST(ParseTunableTest, EchoesForeignTextSafelyAndShort) {
  const std::string hostile = "\x1b[31m" + std::string(1 << 20, 'x');

  const std::string message =
      Message(Parse(TunableId::kPagesetBatchFactor, hostile));

  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(message, Not(HasSubstr("\x1b")));
  EXPECT_THAT(message, HasSubstr("1048581 bytes"));
  EXPECT_EQ(Message(Parse(TunableId::kPagesetBatchFactor, "")),
            "pageset.batch_factor is \"\"; allowed 0.25 to 8");
}

TEST(ParseTunableTest, DoesNotFollowTheLocale) {
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) {
    GTEST_SKIP() << "no locale with a decimal comma here";
  }
  EXPECT_TRUE(Parse(TunableId::kPagesetBatchFactor, "0.5").ok());
  EXPECT_FALSE(Parse(TunableId::kPagesetBatchFactor, "0,5").ok());
  EXPECT_EQ(ValueText(TunableValue(0.5)), "0.5");
  std::setlocale(LC_ALL, "C");
}

TEST(CheckTunableTest, TakesAnIntegerForARealButNotTheOtherWay) {
  const auto& real = GetTunable(TunableId::kPagesetBatchFactor);
  const auto& integer = GetTunable(TunableId::kWatermarkScaleFactor);

  EXPECT_EQ(*CheckTunable(real, TunableValue(int64_t{2})), TunableValue(2.0));
  EXPECT_FALSE(CheckTunable(integer, TunableValue(2.0)).ok());
}

TEST(CheckTunableTest, RefusesTheWrongKind) {
  const auto& real = GetTunable(TunableId::kPagesetBatchFactor);
  const auto& choice = GetTunable(TunableId::kPagesetPolicy);

  EXPECT_FALSE(CheckTunable(real, TunableValue(std::string("2"))).ok());
  EXPECT_FALSE(CheckTunable(real, TunableValue(true)).ok());
  EXPECT_FALSE(CheckTunable(real, TunableValue(AutoValue{})).ok());
  EXPECT_FALSE(CheckTunable(choice, TunableValue(int64_t{0})).ok());
  EXPECT_FALSE(CheckTunable(choice, TunableValue(AutoValue{})).ok());
}

TEST(CheckTunableTest, RefusesWhatIsNotANumber) {
  const auto& real = GetTunable(TunableId::kPagesetBatchFactor);
  const double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_FALSE(CheckTunable(real, TunableValue(std::nan(""))).ok());
  EXPECT_FALSE(CheckTunable(real, TunableValue(kInfinity)).ok());
  EXPECT_FALSE(CheckTunable(real, TunableValue(-kInfinity)).ok());
}

TEST(CheckTunableTest, RefusesIntegersFarOutside) {
  const auto& fraction = GetTunable(TunableId::kPagesetHighFraction);
  const auto& real = GetTunable(TunableId::kPagesetBatchFactor);

  for (const int64_t value : {std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    EXPECT_FALSE(CheckTunable(fraction, TunableValue(value)).ok());
    EXPECT_FALSE(CheckTunable(real, TunableValue(value)).ok());
  }
}

TEST(ValueTextTest, ReadsBackToTheSameValue) {
  for (const double value : {0.25, 1.0 / 3, 7.999999999999999, 5.0}) {
    EXPECT_EQ(
        *Parse(TunableId::kPagesetBatchFactor, ValueText(TunableValue(value))),
        TunableValue(value));
  }
}

TEST(AllowedTextTest, SaysZeroAutoRangeAndChoices) {
  EXPECT_EQ(AllowedText(GetTunable(TunableId::kPagesetBatchFactor)),
            "0.25 to 8");
  EXPECT_EQ(AllowedText(GetTunable(TunableId::kPagesetHighFraction)),
            "0 or 8 to 2147483647");
  EXPECT_EQ(AllowedText(GetTunable(TunableId::kWatermarkMinFreeKbytes)),
            "auto or 0 to 67108864");
  EXPECT_EQ(AllowedText(GetTunable(TunableId::kPagesetPolicy)),
            "fixed, watermark, adaptive, adaptive-high, memtuned");
}

}  // namespace
}  // namespace memtuned
