// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "daemon/rpc/errors.h"
#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kClientLimitBytes = 4 << 20;

std::vector<int> Nodes(int count) {
  std::vector<int> nodes(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) nodes[static_cast<size_t>(i)] = i;
  return nodes;
}

TEST(StatsServiceTest, ConvertsAZone) {
  TestServer server;
  v1::ListZonesRequest request;
  request.set_parent("pools/default/nodes/1000");
  v1::ListZonesResponse response;

  ASSERT_TRUE(server.stats().ListZones(Soon().get(), request, &response).ok());

  ASSERT_EQ(response.zones_size(), 1);
  const v1::Zone& zone = response.zones(0);
  EXPECT_EQ(zone.name(), "pools/default/nodes/1000/zones/Normal");
  EXPECT_EQ(zone.node(), 1000);
  EXPECT_EQ(zone.managed_bytes(), 65536 * 4096ll);
  EXPECT_EQ(zone.watermarks().low_bytes(), 200 * 4096);
  EXPECT_EQ(zone.pagesets().count(), 8);
  EXPECT_EQ(zone.pagesets().pages_sum(), 80);
  EXPECT_EQ(zone.pagesets().batch(), 63);
  EXPECT_EQ(zone.pagesets().high_min(), 378);
  EXPECT_EQ(zone.free_blocks(10), 32);
  EXPECT_EQ(zone.state(), v1::ZONE_STATE_READY);
  EXPECT_EQ(zone.limits().state(), v1::LIMITS_STATE_OK);
  EXPECT_EQ(zone.flows().refills(), 7);
  EXPECT_EQ(zone.zone_lock().contended(), 2);
  EXPECT_EQ(zone.zone_lock().wait().count(), 2);
  EXPECT_EQ(zone.zone_lock().wait().buckets(1).cumulative_count(), 1);
  EXPECT_EQ(zone.zone_lock().wait().buckets(9).cumulative_count(), 2);
  EXPECT_EQ(response.sample().subject(), "pools/default");
  EXPECT_EQ(response.sample().policy(), "memtuned");
  EXPECT_GT(response.sample().time().seconds(), 1700000000);
  EXPECT_LT(response.sample().age().seconds(), 20);
}

TEST(StatsServiceTest, SaysWhichNodesAndZonesThereAre) {
  TestServer server;
  for (const char* parent :
       {"pools/default/nodes/1", "pools/default/nodes/0/zones/Movable"}) {
    v1::ListPagesetsRequest request;
    request.set_parent(parent);
    v1::ListPagesetsResponse response;

    const grpc::Status status =
        server.stats().ListPagesets(Soon().get(), request, &response);

    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << parent;
    EXPECT_THAT(status.error_message(), HasSubstr("nodes/1000/zones/Normal"));
    EXPECT_EQ(DetailsOf(status).info.reason(), "NOT_FOUND");
  }
}

TEST(StatsServiceTest, PagesThroughEveryPagesetOfABigMachineOnce) {
  TestServer server({{.nodes = Nodes(16), .cpus_per_node = 64}});
  v1::ListPagesetsRequest request;
  request.set_parent("pools/default");
  request.set_view(v1::PAGESET_VIEW_CPU);
  request.set_page_size(10000);
  std::set<std::string> names;
  int pages = 0;

  do {
    v1::ListPagesetsResponse response;
    const grpc::Status status =
        server.stats().ListPagesets(Soon().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_LT(response.ByteSizeLong(), kClientLimitBytes);
    for (const v1::Pageset& pageset : response.pagesets()) {
      EXPECT_TRUE(names.insert(pageset.name()).second) << pageset.name();
    }
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());

  EXPECT_EQ(names.size(), 16u * 1024);
  EXPECT_GE(pages, 2);
}

TEST(StatsServiceTest, ListsOneZonesPagesetsInPagesOfTheSizeAskedFor) {
  TestServer server({{.nodes = {3}, .cpus_per_node = 5}});
  v1::ListPagesetsRequest request;
  request.set_parent("pools/default/nodes/3/zones/Normal");
  request.set_view(v1::PAGESET_VIEW_CPU);
  request.set_page_size(2);
  std::vector<int> cpus, sizes;

  do {
    v1::ListPagesetsResponse response;
    ASSERT_TRUE(
        server.stats().ListPagesets(Soon().get(), request, &response).ok());
    sizes.push_back(response.pagesets_size());
    for (const auto& row : response.pagesets()) cpus.push_back(row.cpu());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());

  EXPECT_THAT(cpus, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
}

TEST(StatsServiceTest, TakesFullSamplesOnlyWhenSomebodyAskedForThem) {
  TestServer server({FakeOptions{}},
                    {.interval = std::chrono::milliseconds(20),
                     .full_keep = std::chrono::milliseconds(100)});
  v1::ListPagesetsRequest request;
  request.set_parent("pools/default");
  v1::ListPagesetsResponse response;

  ASSERT_TRUE(
      server.stats().ListPagesets(Soon().get(), request, &response).ok());
  EXPECT_EQ(server.subject().full_snapshots_taken(), 0);
  EXPECT_EQ(response.zones_size(), 2);
  request.set_view(v1::PAGESET_VIEW_CPU);
  ASSERT_TRUE(
      server.stats().ListPagesets(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.pagesets_size(), 16);
  EXPECT_EQ(response.pagesets(0).pages(), 10);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const int full = server.subject().full_snapshots_taken();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));

  EXPECT_GE(full, 1);
  EXPECT_EQ(server.subject().full_snapshots_taken(), full);
}

TEST(StatsServiceTest, RefusesATokenOfAnotherRequest) {
  TestServer server;
  v1::ListZonesRequest request;
  request.set_parent("pools/default");
  request.set_page_size(1);
  v1::ListZonesResponse response;
  ASSERT_TRUE(server.stats().ListZones(Soon().get(), request, &response).ok());
  ASSERT_NE(response.next_page_token(), "");

  request.set_parent("pools/default/nodes/0");
  request.set_page_token(response.next_page_token());
  const grpc::Status status =
      server.stats().ListZones(Soon().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).bad_request.field_violations(0).field(),
            "page_token");
}

TEST(StatsServiceTest, ListsProcessesBySlot) {
  TestServer server({FakeOptions{.processes = 250}});
  v1::ListProcessesRequest request;
  request.set_parent("pools/default");
  std::vector<int> sizes;
  std::set<std::string> names;

  do {
    v1::ListProcessesResponse response;
    ASSERT_TRUE(
        server.stats().ListProcesses(Soon().get(), request, &response).ok());
    sizes.push_back(response.processes_size());
    for (const auto& row : response.processes()) names.insert(row.name());
    EXPECT_EQ(response.processes(0).allocated_bytes(), 8192);
    EXPECT_THAT(response.processes(0).mems_allowed(), ElementsAre(0, 1000));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());

  EXPECT_THAT(sizes, ElementsAre(100, 100, 50));
  EXPECT_EQ(names.count("pools/default/processes/249-17"), 1u);
  EXPECT_EQ(names.size(), 250u);
}

TEST(StatsServiceTest, ShowsProcessesWithTheirNodesWhenAsked) {
  TestServer server({FakeOptions{.processes = 3}});
  v1::ListProcessesRequest request;
  request.set_parent("pools/default");
  v1::ListProcessesResponse response;
  ASSERT_TRUE(
      server.stats().ListProcesses(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.processes(0).nodes_size(), 0);
  EXPECT_EQ(response.processes(0).peak_bytes(), 3 * 4096);
  EXPECT_FALSE(response.processes(0).has_limit_bytes());
  EXPECT_THAT(response.processes(0).held_blocks(), ElementsAre(2));
  request.set_view(v1::PROCESS_VIEW_NODES);
  response.Clear();

  ASSERT_TRUE(
      server.stats().ListProcesses(Soon().get(), request, &response).ok());

  ASSERT_EQ(response.processes_size(), 3);
  ASSERT_EQ(response.processes(2).nodes_size(), 1);
  EXPECT_EQ(response.processes(2).nodes(0).bytes(), 8192);
  EXPECT_EQ(response.processes(2).nodes(0).offered_bytes(), 4096);
  request.set_view(static_cast<v1::ProcessView>(3));
  EXPECT_EQ(server.stats()
                .ListProcesses(Soon().get(), request, &response)
                .error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(StatsServiceTest, ShowsInStatsWhatTheTableOfStatisticsShows) {
  TestServer server;
  v1::GetSnapshotRequest request;
  request.set_name("pools/default");
  request.set_include_stats(true);
  v1::GetSnapshotResponse response;

  ASSERT_TRUE(
      server.stats().GetSnapshot(Soon().get(), request, &response).ok());

  int64_t expected = 0;
  StatSink sink;
  sink.value = [&](StatLabels, double) { ++expected; };
  sink.histogram = [&](StatLabels, std::span<const uint64_t>, double) {
    ++expected;
  };
  for (const StatDef& def : StatTable()) {
    if (!def.per_cpu) def.read(*server.sampler().Latest(), sink);
  }
  EXPECT_EQ(response.snapshot().stats_size(), expected);
  bool found = false;
  for (const v1::Stat& stat : response.snapshot().stats()) {
    if (stat.name() != "memtuned_zone_free_bytes") continue;
    if (stat.labels().at("node") != "1000") continue;
    found = true;
    EXPECT_EQ(stat.type(), v1::STAT_TYPE_GAUGE);
    EXPECT_EQ(stat.value(), 32768.0 * 4096);
    EXPECT_EQ(stat.labels().at("subject"), "pools/default");
  }
  EXPECT_TRUE(found);
}

TEST(StatsServiceTest, CutsABigSnapshotAndItsStatsBelowTheClientsLimit) {
  TestServer server({{.nodes = Nodes(128), .cpus_per_node = 1}});
  v1::GetSnapshotRequest request;
  request.set_name("pools/default");
  request.set_view(v1::SNAPSHOT_VIEW_FULL);
  request.set_include_stats(true);
  std::set<std::string> zones, series;
  int pages = 0, nodes = 0, rows = 0, cpu_rows = 0;

  do {
    v1::GetSnapshotResponse response;
    const grpc::Status status =
        server.stats().GetSnapshot(Soon().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_LT(response.ByteSizeLong(), kClientLimitBytes);
    nodes += response.snapshot().nodes_size();
    for (const auto& zone : response.snapshot().zones()) {
      EXPECT_TRUE(zones.insert(zone.name()).second);
      cpu_rows += zone.cpu_pagesets_size();
    }
    for (const auto& stat : response.snapshot().stats()) {
      std::string key = stat.name();
      const std::map<std::string, std::string> labels(stat.labels().begin(),
                                                      stat.labels().end());
      for (const auto& [name, value] : labels) key += "," + name + "=" + value;
      EXPECT_TRUE(series.insert(key).second) << key;
      ++rows;
    }
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());

  EXPECT_EQ(zones.size(), 128u);
  EXPECT_EQ(nodes, 128);
  EXPECT_EQ(cpu_rows, 128 * 128);
  EXPECT_GT(rows, 128 * 128 * 2);
  EXPECT_GE(pages, 2);
}

TEST(StatsServiceTest, RefusesAnUnknownView) {
  TestServer server;
  v1::GetSnapshotRequest request;
  request.set_name("pools/default");
  request.set_view(static_cast<v1::SnapshotView>(7));
  v1::GetSnapshotResponse response;

  const grpc::Status status =
      server.stats().GetSnapshot(Soon().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("view: is 7"));
}

TEST(StatsServiceTest, SaysWhyThereIsNoFullSample) {
  TestServer server({FakeOptions{}},
                    {.interval = std::chrono::milliseconds(10)});
  ASSERT_TRUE(server.sampler().Refresh(SteadyTime::max()));
  server.subject().SetSnapshotError(absl::DataLossError("segment is broken"));
  v1::ListPagesetsRequest request;
  request.set_parent("pools/default");
  request.set_view(v1::PAGESET_VIEW_CPU);
  v1::ListPagesetsResponse response;

  const grpc::Status status =
      server.stats().ListPagesets(Soon().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("segment is broken"));
}

TEST(StatsServiceTest, AsksToRetryWhileThereIsNoSampleAtAll) {
  FakeSubject subject;
  subject.SetSnapshotError(absl::InternalError("not yet"));
  Sampler sampler(&subject, {});
  sampler.Start();

  const auto sample =
      LatestSample({&subject, &sampler}, std::chrono::steady_clock::now() +
                                             std::chrono::milliseconds(50));

  const grpc::Status status = ToGrpcStatus(sample.status());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailsOf(status).info.reason(), "NO_SAMPLE");
  EXPECT_EQ(DetailsOf(status).retry.retry_delay().seconds(), 1);
}

}  // namespace
}  // namespace memtuned
