// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/call_budget.h"

#include <gtest/gtest.h>

namespace memtuned {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const CallBudget::Time kStart{};

TEST(CallBudgetTest, GivesAMinutesWorthAtOnceAndThenEvenly) {
  CallBudget budget(60);
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(budget.Take("a", kStart).wait_seconds, 0) << i;
  }

  const CallBudget::Answer first = budget.Take("a", kStart);
  const CallBudget::Answer second =
      budget.Take("a", kStart + milliseconds(250));

  EXPECT_DOUBLE_EQ(first.wait_seconds, 1);
  EXPECT_EQ(first.refused, 1);
  EXPECT_DOUBLE_EQ(second.wait_seconds, 0.75);
  EXPECT_EQ(second.refused, 2);
  EXPECT_EQ(budget.Take("b", kStart).wait_seconds, 0);
  const CallBudget::Answer later = budget.Take("a", kStart + seconds(1));
  EXPECT_EQ(later.wait_seconds, 0);
  EXPECT_EQ(later.refused, 2);
  EXPECT_GT(budget.Take("a", kStart + seconds(1)).wait_seconds, 0);
}

TEST(CallBudgetTest, SavesNoMoreThanAMinutesWorth) {
  CallBudget budget(3);
  budget.Take("a", kStart);
  const auto later = kStart + seconds(3600);

  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(budget.Take("a", later).wait_seconds, 0) << i;
  }

  EXPECT_DOUBLE_EQ(budget.Take("a", later).wait_seconds, 20);
}

TEST(CallBudgetTest, ANewRateHoldsFromTheNextCallOn) {
  CallBudget budget(600);
  budget.Take("a", kStart);

  budget.SetPerMinute(1);

  EXPECT_EQ(budget.Take("a", kStart).wait_seconds, 0);
  EXPECT_DOUBLE_EQ(budget.Take("a", kStart).wait_seconds, 60);
}

TEST(CallBudgetTest, RemembersTheLastCallersOnly) {
  CallBudget budget(1);
  budget.Take("first", kStart);
  EXPECT_GT(budget.Take("first", kStart).wait_seconds, 0);
  for (size_t i = 0; i < CallBudget::kMaxCallers - 1; ++i) {
    budget.Take(std::to_string(i), kStart);
  }
  EXPECT_GT(budget.Take("first", kStart).wait_seconds, 0);

  for (size_t i = 0; i < CallBudget::kMaxCallers; ++i) {
    budget.Take("x" + std::to_string(i), kStart);
  }

  EXPECT_EQ(budget.Take("first", kStart).wait_seconds, 0);
}

}  // namespace
}  // namespace memtuned
