// SPDX-License-Identifier: Apache-2.0
// CPU lists and masks: every form the kernel prints or takes, and what is
// refused.
#include "core/base/cpu_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace memtuned {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int> Parsed(std::string_view text) {
  absl::StatusOr<std::vector<int>> cpus = ParseCpuList(text);
  EXPECT_TRUE(cpus.ok()) << text << ": " << cpus.status();
  return cpus.ok() ? *cpus : std::vector<int>{-1};
}

std::string Error(const absl::StatusOr<std::vector<int>>& cpus) {
  EXPECT_EQ(cpus.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(cpus.status().message());
}

TEST(CpuListTest, ReadsNumbersAndRanges) {
  EXPECT_THAT(Parsed("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(Parsed("7"), ElementsAre(7));
  EXPECT_THAT(Parsed("5-5"), ElementsAre(5));
}

TEST(CpuListTest, ReadsStridesAndGroups) {
  EXPECT_THAT(Parsed("10-16/2"), ElementsAre(10, 12, 14, 16));
  EXPECT_THAT(Parsed("0-31:2/8"), ElementsAre(0, 1, 8, 9, 16, 17, 24, 25));
  EXPECT_THAT(Parsed("0-3:1/1"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Parsed("0-9:3/100"), ElementsAre(0, 1, 2));
}

TEST(CpuListTest, EmptyTextIsTheEmptyList) {
  EXPECT_THAT(Parsed(""), IsEmpty());
  EXPECT_THAT(Parsed("\n"), IsEmpty());
  EXPECT_THAT(Parsed("  \r\n"), IsEmpty());
}

TEST(CpuListTest, IgnoresSpaceAndTheFinalNewline) {
  EXPECT_THAT(Parsed(" 0-1, 4 \n"), ElementsAre(0, 1, 4));
}

TEST(CpuListTest, SortsAndMergesOverlaps) {
  EXPECT_THAT(Parsed("8,0-2,1-3,8"), ElementsAre(0, 1, 2, 3, 8));
}

TEST(CpuListTest, NamesTheTextAndTheItemThatIsWrong) {
  for (const char* bad : {"x", "1-", "-1", "1-x", "1,", ",1", "1,,2", "1 2",
                          "0-3/", "0-3:2", "0-3:/2", "3/2", "0-3:1/2/3", "0x10",
                          "+1", "1.5", "all", "0--3", "99999999999999999999"}) {
    EXPECT_THAT(Error(ParseCpuList(bad)),
                AllOf(HasSubstr("CPU list '"), HasSubstr("is not a number")))
        << bad;
  }
  EXPECT_THAT(Error(ParseCpuList("0-3,oops,9")),
              AllOf(HasSubstr("'0-3,oops,9'"), HasSubstr("'oops'")));
}

TEST(CpuListTest, RefusesWhatIsBeyondTheLimit) {
  EXPECT_TRUE(ParseCpuList("4095").ok());
  EXPECT_THAT(Error(ParseCpuList("4096")), HasSubstr("above the limit 4095"));
  EXPECT_THAT(Error(ParseCpuList("0-8", 7)), HasSubstr("above the limit 7"));
  EXPECT_THAT(Error(ParseCpuList("0", -1)), HasSubstr("-1"));
}

TEST(CpuListTest, RefusesBackwardRangesAndEmptyGroups) {
  EXPECT_THAT(Error(ParseCpuList("3-1")), HasSubstr("backwards"));
  EXPECT_THAT(Error(ParseCpuList("0-3:0/2")), HasSubstr("takes 0 of each"));
  EXPECT_THAT(Error(ParseCpuList("0-3:3/2")), HasSubstr("takes 3 of each"));
  EXPECT_THAT(Error(ParseCpuList("0-3/0")), HasSubstr("group of 0"));
}

TEST(CpuListTest, RefusesLongTextAndShowsOnlyItsStart) {
  const std::string error =
      Error(ParseCpuList(std::string(kMaxCpuListBytes + 1, '1')));

  EXPECT_THAT(error, HasSubstr("65537 bytes"));
  EXPECT_LT(error.size(), 200u);
}

TEST(CpuListTest, ShowsUnprintableTextEscaped) {
  EXPECT_THAT(Error(ParseCpuList(std::string_view("1,\x01\0", 4))),
              HasSubstr("\\x01\\x00"));
}

TEST(CpuListTest, FormatsTheShortestList) {
  EXPECT_EQ(FormatCpuList({}), "");
  EXPECT_EQ(FormatCpuList({3}), "3");
  EXPECT_EQ(FormatCpuList({0, 1}), "0-1");
  EXPECT_EQ(FormatCpuList({8, 0, 2, 1, 2}), "0-2,8");
}

TEST(CpuListTest, BringsAnySetBackAfterFormatting) {
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu <= kMaxCpuNumber; ++cpu) {
      if (random() % static_cast<unsigned>(round + 2) == 0) cpus.push_back(cpu);
    }

    EXPECT_EQ(Parsed(FormatCpuList(cpus)), cpus);
  }
}

TEST(CpuMaskTest, ReadsWordsFromTheHighestDown) {
  EXPECT_THAT(*ParseCpuMask("0000ff00\n"),
              ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(*ParseCpuMask("1,00000000,80000001"), ElementsAre(0, 31, 64));
  EXPECT_THAT(*ParseCpuMask("0"), IsEmpty());
  EXPECT_THAT(*ParseCpuMask("A"), ElementsAre(1, 3));
}

TEST(CpuMaskTest, RefusesWhatIsNoMask) {
  EXPECT_THAT(Error(ParseCpuMask("")), HasSubstr("no hexadecimal mask"));
  EXPECT_THAT(Error(ParseCpuMask("g")), HasSubstr("not hexadecimal"));
  EXPECT_THAT(Error(ParseCpuMask("1,,1")), HasSubstr("1 to 8"));
  EXPECT_THAT(Error(ParseCpuMask("123456789")), HasSubstr("1 to 8"));
  EXPECT_THAT(Error(ParseCpuMask("1,00000000", 31)), HasSubstr("CPU 32"));
}

TEST(CpuMaskTest, IgnoresZeroWordsBeyondTheLimit) {
  EXPECT_THAT(*ParseCpuMask("00000000,00000003", 7), ElementsAre(0, 1));
}

}  // namespace
}  // namespace memtuned
