// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

v1::WatchSnapshotsRequest Watch() {
  v1::WatchSnapshotsRequest request;
  request.set_name("pools/default");
  return request;
}

TEST(WatchTest, StreamsEachNewSampleUntilCancelled) {
  TestServer server({FakeOptions{}}, {.interval = milliseconds(20)});
  auto context = Soon();
  auto reader = server.stats().WatchSnapshots(context.get(), Watch());
  v1::WatchSnapshotsResponse event;
  std::vector<double> times;

  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(reader->Read(&event));
    ASSERT_TRUE(event.has_snapshot());
    EXPECT_EQ(event.snapshot().zones_size(), 2);
    EXPECT_EQ(event.snapshot().zones(0).cpu_pagesets_size(), 0);
    const auto& time = event.snapshot().sample().time();
    times.push_back(static_cast<double>(time.seconds()) + time.nanos() * 1e-9);
  }
  context->TryCancel();
  while (reader->Read(&event)) {
  }

  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  for (size_t i = 1; i < times.size(); ++i) EXPECT_GT(times[i], times[i - 1]);
}

TEST(WatchTest, KeepsTheLeastIntervalAskedFor) {
  TestServer server({FakeOptions{}}, {.interval = milliseconds(10)});
  v1::WatchSnapshotsRequest request = Watch();
  request.mutable_min_interval()->set_nanos(200'000'000);
  auto context = Soon();
  auto reader = server.stats().WatchSnapshots(context.get(), request);
  v1::WatchSnapshotsResponse event;
  ASSERT_TRUE(reader->Read(&event));
  const auto start = steady_clock::now();

  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader->Read(&event));

  EXPECT_GE(steady_clock::now() - start, milliseconds(450));
  context->TryCancel();
  while (reader->Read(&event)) {
  }
}

TEST(WatchTest, TellsASlowReaderHowManyItMissed) {
  std::vector<int> nodes(256);
  for (int i = 0; i < 256; ++i) nodes[static_cast<size_t>(i)] = i;
  TestServer server({{.nodes = nodes, .cpus_per_node = 1}},
                    {.interval = milliseconds(10)});
  auto context = Soon();
  auto reader = server.stats().WatchSnapshots(context.get(), Watch());
  v1::WatchSnapshotsResponse event;
  ASSERT_TRUE(reader->Read(&event));

  // Flow control stops the writer; the ring of 16 overflows meanwhile.
  const int before = server.subject().snapshots_taken();
  while (server.subject().snapshots_taken() < before + 80) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  int64_t missed = 0;
  int snapshots = 0;
  while (missed == 0 && snapshots < 300 && reader->Read(&event)) {
    missed += event.fell_behind().missed();
    snapshots += event.has_snapshot();
  }

  EXPECT_GT(missed, 0);
  EXPECT_LT(snapshots, 80);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_TRUE(event.has_snapshot());
  EXPECT_GE(server.observer().fell_behind(), 1);
  context->TryCancel();
  while (reader->Read(&event)) {
  }
}

TEST(WatchTest, RefusesTheSixtyFifthWatcherUntilOneLeaves) {
  TestServer server;
  server.sampler().Refresh(SteadyTime::max());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchSnapshotsResponse>>>
      readers;
  v1::WatchSnapshotsResponse event;
  for (int i = 0; i < StatsService::kMaxWatchers; ++i) {
    contexts.push_back(Soon());
    readers.push_back(
        server.stats().WatchSnapshots(contexts.back().get(), Watch()));
    ASSERT_TRUE(readers.back()->Read(&event)) << i;
  }

  auto context = Soon();
  auto refused = server.stats().WatchSnapshots(context.get(), Watch());
  EXPECT_FALSE(refused->Read(&event));
  const grpc::Status status = refused->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailsOf(status).info.reason(), "TOO_MANY_WATCHERS");
  EXPECT_GT(DetailsOf(status).retry.retry_delay().seconds(), 0);
  // Other calls still find a thread.
  v1::ListSubjectsResponse subjects;
  EXPECT_TRUE(server.topology().ListSubjects(Soon().get(), {}, &subjects).ok());

  contexts[0]->TryCancel();
  while (readers[0]->Read(&event)) {
  }
  grpc::Status again;
  for (int i = 0; i < 50; ++i) {
    auto retry = Soon();
    auto reader = server.stats().WatchSnapshots(retry.get(), Watch());
    if (reader->Read(&event)) {
      again = grpc::Status::OK;
      retry->TryCancel();
      break;
    }
    again = reader->Finish();
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_TRUE(again.ok()) << again.error_message();
  for (auto& open : contexts) open->TryCancel();
}

TEST(WatchTest, RefusesAnIntervalOutOfRange) {
  TestServer server;
  for (const int64_t seconds : {-1, 3601}) {
    v1::WatchSnapshotsRequest request = Watch();
    request.mutable_min_interval()->set_seconds(seconds);
    auto context = Soon();
    auto reader = server.stats().WatchSnapshots(context.get(), request);
    v1::WatchSnapshotsResponse event;

    EXPECT_FALSE(reader->Read(&event));

    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(DetailsOf(status).bad_request.field_violations(0).field(),
              "min_interval");
  }
}

TEST(WatchTest, EndsWithUnavailableWithinTwoSecondsOfAStop) {
  TestServer server({{.name = "pools/default"}, {.name = "pools/other"}},
                    {.interval = milliseconds(10)});
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchSnapshotsResponse>>>
      readers;
  v1::WatchSnapshotsResponse event;
  for (const char* name : {"pools/default", "pools/default", "pools/other"}) {
    v1::WatchSnapshotsRequest request;
    request.set_name(name);
    contexts.push_back(Soon());
    readers.push_back(
        server.stats().WatchSnapshots(contexts.back().get(), request));
    ASSERT_TRUE(readers.back()->Read(&event));
  }
  std::vector<std::thread> threads;
  for (auto& reader : readers) {
    threads.emplace_back([&reader] {
      v1::WatchSnapshotsResponse rest;
      while (reader->Read(&rest)) {
      }
      const grpc::Status status = reader->Finish();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      EXPECT_EQ(DetailsOf(status).info.reason(), "STOPPING");
    });
  }
  const auto start = steady_clock::now();

  server.server().Stop(milliseconds(1500));

  EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
  for (std::thread& thread : threads) thread.join();
}

TEST(WatchTest, StopsInTimeAlthoughAWatcherNeverReads) {
  std::vector<int> nodes(256);
  for (int i = 0; i < 256; ++i) nodes[static_cast<size_t>(i)] = i;
  TestServer server({{.nodes = nodes, .cpus_per_node = 1}},
                    {.interval = milliseconds(10)});
  auto context = Soon();
  auto reader = server.stats().WatchSnapshots(context.get(), Watch());
  v1::WatchSnapshotsResponse event;
  ASSERT_TRUE(reader->Read(&event));
  std::this_thread::sleep_for(milliseconds(500));
  const auto start = steady_clock::now();

  server.server().Stop(milliseconds(1000));

  EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
}

}  // namespace
}  // namespace memtuned
