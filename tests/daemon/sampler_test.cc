// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/daemon/rpc/fake_subject.h"

namespace memtuned {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

SteadyTime In(int ms) { return steady_clock::now() + milliseconds(ms); }

TEST(SamplerTest, HasNoSampleBeforeItStarts) {
  FakeSubject subject;
  Sampler sampler(&subject, {});

  EXPECT_EQ(sampler.Latest(), nullptr);
  EXPECT_EQ(subject.snapshots_taken(), 0);
}

TEST(SamplerTest, TakesASampleAtOnceAndThenOneEachInterval) {
  FakeSubject subject;
  Sampler sampler(&subject, {.interval = milliseconds(50)});

  sampler.Start();
  std::this_thread::sleep_for(milliseconds(525));
  sampler.Stop();

  EXPECT_GE(subject.snapshots_taken(), 5);
  EXPECT_LE(subject.snapshots_taken(), 12);
}

TEST(SamplerTest, SharesOneCopyHoweverManyRead) {
  FakeSubject subject;
  Sampler sampler(&subject, {.interval = std::chrono::hours(1)});
  sampler.Start();
  ASSERT_TRUE(sampler.Refresh(In(5000)));
  const int taken = subject.snapshots_taken();

  const auto first = sampler.Latest();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(sampler.Latest(), first);

  EXPECT_EQ(subject.snapshots_taken(), taken);
}

TEST(SamplerTest, RefreshWaitsForASampleBegunAfterTheCall) {
  FakeSubject subject;
  Sampler sampler(&subject, {.interval = std::chrono::hours(1)});
  sampler.Start();
  ASSERT_TRUE(sampler.Refresh(In(5000)));

  subject.SetForeign(TunableId::kPagesetBatchFactor, 2.0);
  ASSERT_TRUE(sampler.Refresh(In(5000)));

  EXPECT_EQ(sampler.Latest()->zones[0].batch, 126u);
}

TEST(SamplerTest, RefreshGivesUpAtItsDeadline) {
  FakeSubject subject;
  Sampler sampler(&subject, {});

  EXPECT_FALSE(sampler.Refresh(In(30)));
}

TEST(SamplerTest, KeepsTheLastGoodSampleAndCountsFailures) {
  FakeSubject subject;
  std::atomic<int> became_sick{0}, became_well{0};
  Sampler sampler(&subject, {.interval = milliseconds(10)}, [&](bool healthy) {
    ++(healthy ? became_well : became_sick);
  });
  sampler.Start();
  ASSERT_TRUE(sampler.Refresh(In(5000)));

  subject.SetSnapshotError(absl::InternalError("no"));
  EXPECT_FALSE(sampler.Refresh(In(5000)));
  EXPECT_FALSE(sampler.Refresh(In(5000)));

  EXPECT_NE(sampler.Latest(), nullptr);
  EXPECT_GE(sampler.failures(), 2);
  EXPECT_EQ(sampler.last_error(), "no");
  subject.SetSnapshotError(absl::OkStatus());
  EXPECT_TRUE(sampler.Refresh(In(5000)));
  sampler.Stop();
  EXPECT_EQ(became_sick, 1);
  EXPECT_EQ(became_well, 2);
}

TEST(SamplerTest, AddsPerCpuRowsOnDemandAndStopsAfterAWhile) {
  FakeSubject subject;
  Sampler sampler(
      &subject, {.interval = milliseconds(10), .full_keep = milliseconds(50)});
  sampler.Start();
  ASSERT_TRUE(sampler.Refresh(In(5000)));
  EXPECT_EQ(subject.full_snapshots_taken(), 0);

  const auto full = sampler.LatestFull(In(5000));
  ASSERT_TRUE(full.ok());
  EXPECT_EQ((*full)->zones[0].pagesets.size(), 8u);
  std::this_thread::sleep_for(milliseconds(150));
  ASSERT_TRUE(sampler.Refresh(In(5000)));

  EXPECT_TRUE(sampler.Latest()->zones[0].pagesets.empty());
}

TEST(SamplerTest, AnswersFullRequestsFromOneSampleWhileItIsFresh) {
  FakeSubject subject;
  Sampler sampler(&subject, {.interval = std::chrono::hours(1)});
  sampler.Start();

  ASSERT_TRUE(sampler.LatestFull(In(5000)).ok());
  const int taken = subject.snapshots_taken();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sampler.LatestFull(In(5000)).ok());

  EXPECT_EQ(subject.snapshots_taken(), taken);
}

TEST(SamplerTest, FreesWaitingCallersWhenItStops) {
  FakeSubject subject;
  subject.SetSnapshotError(absl::InternalError("no"));
  Sampler sampler(&subject, {.interval = std::chrono::hours(1)});
  sampler.Start();
  const auto watch = sampler.Watch(std::chrono::nanoseconds(0));
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(50));
    sampler.Stop();
  });

  const SnapshotWatch::Event event = watch->Next(std::chrono::seconds(10));
  stopper.join();

  EXPECT_TRUE(event.ended);
  EXPECT_EQ(sampler.LatestFull(In(10)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(sampler.Watch(std::chrono::nanoseconds(0))
                  ->Next(std::chrono::seconds(10))
                  .ended);
}

TEST(SnapshotWatchTest, DropsTheOldestAndCountsThem) {
  FakeSubject subject;
  Sampler sampler(&subject, {.interval = std::chrono::hours(1)});
  sampler.Start();
  ASSERT_TRUE(sampler.Refresh(In(5000)));
  const auto watch = sampler.Watch(std::chrono::nanoseconds(0));
  const auto first = sampler.Latest();

  for (int i = 0; i < 20; ++i) ASSERT_TRUE(sampler.Refresh(In(5000)));

  const auto event = watch->Next(milliseconds(0));
  EXPECT_EQ(event.missed, 5);  // 1 + 20 offered, 16 kept
  EXPECT_NE(event.snapshot, first);
  for (int i = 0; i < 15; ++i) {
    const auto next = watch->Next(milliseconds(0));
    ASSERT_NE(next.snapshot, nullptr);
    EXPECT_EQ(next.missed, 0);
  }
  EXPECT_EQ(watch->Next(milliseconds(0)).snapshot, nullptr);
}

TEST(SamplerTest, FollowsANewIntervalAtOnce) {
  FakeSubject subject;
  Sampler sampler(&subject, {.interval = std::chrono::hours(1)});
  sampler.Start();
  ASSERT_TRUE(sampler.Refresh(In(5000)));
  const int taken = subject.snapshots_taken();

  sampler.SetInterval(milliseconds(10));
  for (int i = 0; i < 200 && subject.snapshots_taken() < taken + 3; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }

  EXPECT_GE(subject.snapshots_taken(), taken + 3);
}

}  // namespace
}  // namespace memtuned
