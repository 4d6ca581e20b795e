// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/board.h"

#include <gmock/gmock.h>

#include "tests/torture/child.h"

namespace memtuned::torture {
namespace {

using ::testing::ElementsAre;

TEST(BoardTest, KeepsWhatAProcessReportedBeforeItDied) {
  Board& board = *Board::Create();
  Child child = Child::Fork([&] {
    board.Report(Fault::kStamp, "broken");
    Count(board.workers[3].threads[1].frees, 5);
    return 0;
  });
  child.Wait(10000);

  EXPECT_EQ(board.nr_faults(), 1u);
  EXPECT_TRUE(board.Has(Fault::kStamp));
  EXPECT_FALSE(board.Has(Fault::kLost));
  EXPECT_THAT(board.FaultTexts(), ElementsAre("stamp: broken"));
  EXPECT_EQ(board.Sum().frees, 5u);
  EXPECT_EQ(board.Sum(0, 3).frees, 0u);
}

TEST(BoardTest, CountsTheTimeInWhichOthersWereStopped) {
  Board& board = *Board::Create();
  board.BeginStop(1, 100);
  board.EndStop(200);
  board.BeginStop(2, 300);
  bool was_stopped = true;

  EXPECT_EQ(board.StoppedNs(0, 150, 320, &was_stopped), 50u + 20u);
  EXPECT_FALSE(was_stopped);
  EXPECT_EQ(board.StoppedNs(0, 200, 300, &was_stopped), 0u);
}

TEST(BoardTest, KnowsWhoWasStopped) {
  Board& board = *Board::Create();
  board.BeginStop(1, 100);
  bool was_stopped = false;

  board.StoppedNs(1, 50, 150, &was_stopped);
  EXPECT_TRUE(was_stopped);
  board.StoppedNs(1, 50, 90, &was_stopped);
  EXPECT_FALSE(was_stopped);
}

TEST(BoardTest, ForgetsTheOldestStopsFirst) {
  Board& board = *Board::Create();
  for (uint64_t i = 1; i <= Board::kStopIntervals + 1; ++i) {
    board.BeginStop(1, i * 100);
    board.EndStop(i * 100 + 10);
  }
  bool was_stopped = false;

  EXPECT_EQ(board.StoppedNs(0, 100, 199, &was_stopped), 0u);
  EXPECT_EQ(board.StoppedNs(0, 200, 299, &was_stopped), 10u);
}

}  // namespace
}  // namespace memtuned::torture
