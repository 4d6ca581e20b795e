// SPDX-License-Identifier: Apache-2.0
// The fake's stats service. Numbers grow with the number of the sample.
#include <algorithm>
#include <thread>

#include "tests/client/ctl/fake_daemon.h"

namespace memtuned::ctl {
namespace {

constexpr int64_t kZoneBytes = int64_t{256} << 20;
constexpr int64_t kEpoch = 1700000000;

v1::Zone MakeZone(const std::string& subject, int node, int64_t sample) {
  v1::Zone zone;
  zone.set_name(subject + "/nodes/" + std::to_string(node) + "/zones/Normal");
  zone.set_node(node);
  zone.set_zone("Normal");
  zone.set_present_bytes(kZoneBytes);
  zone.set_managed_bytes(node == 0 ? kZoneBytes : kZoneBytes / 100);
  zone.set_state(node == 0 ? v1::ZONE_STATE_READY
                           : v1::ZONE_STATE_INITIALISING);
  zone.set_free_bytes(kZoneBytes / 2);
  zone.mutable_watermarks()->set_min_bytes(1 << 20);
  zone.mutable_watermarks()->set_low_bytes(2 << 20);
  zone.mutable_watermarks()->set_high_bytes(3 << 20);
  v1::PagesetSummary& pagesets = *zone.mutable_pagesets();
  pagesets.set_count(4);
  pagesets.set_pages_sum(512);
  pagesets.set_batch(node == 0 ? 63 : 7);
  pagesets.set_high_min(node == 0 ? 378 : 42);
  pagesets.set_high_max(node == 0 ? 4096 : 42);
  pagesets.mutable_pages()->set_median(31);
  pagesets.mutable_pages()->set_max(42);
  zone.add_free_blocks(3);
  zone.add_free_blocks(0);
  zone.add_free_blocks(9);
  v1::LockStats& lock = *zone.mutable_zone_lock();
  lock.set_acquisitions(2000 * sample);
  lock.set_contended(500 * sample);
  lock.set_wait_seconds(0.001 * static_cast<double>(sample));
  zone.mutable_limits()->set_state(v1::LIMITS_STATE_OK);
  v1::ZoneFlows& flows = *zone.mutable_flows();
  flows.set_refills(1000 * sample);
  flows.set_refilled_pages(7000 * sample);
  v1::FlushCount& flush = *flows.add_flushes();
  flush.set_cause("high");
  flush.set_flushes(300 * sample);
  v1::OrderCount& order = *flows.add_orders();
  order.set_order("0");
  order.set_allocations(10000 * sample);
  order.set_frees(10000 * sample);
  return zone;
}

v1::Stat MakeStat(const std::string& subject, const char* name, double value,
                  v1::StatType type) {
  v1::Stat stat;
  stat.set_name(name);
  stat.set_value(value);
  stat.set_type(type);
  (*stat.mutable_labels())["subject"] = subject;
  (*stat.mutable_labels())["node"] = "0";
  (*stat.mutable_labels())["zone"] = "Normal";
  return stat;
}

void FillSample(const FakeState& state, const std::string& subject,
                int64_t sample, v1::SampleInfo& info) {
  info.mutable_time()->set_seconds(kEpoch + sample);
  info.mutable_age()->set_nanos(300000000);
  info.set_subject(subject);
  info.set_generation(state.generation);
  info.set_etag(state.etag);
  info.set_policy("memtuned");
}

class FakeStats final : public v1::StatsService::Service {
 public:
  explicit FakeStats(FakeState* state) : state_(state) {}

  // Zones on the first page, statistics on the second.
  grpc::Status GetSnapshot(grpc::ServerContext* context,
                           const v1::GetSnapshotRequest* request,
                           v1::GetSnapshotResponse* response) override {
    const grpc::Status entered =
        state_->Enter("GetSnapshot", request->name(), *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const bool first = request->page_token().empty();
    if (first) ++state_->samples;
    v1::Snapshot& snapshot = *response->mutable_snapshot();
    snapshot = MakeSnapshot(*state_, request->name(), state_->samples);
    if (!request->include_stats()) return grpc::Status::OK;
    if (first) {
      response->set_next_page_token("stats");
      return grpc::Status::OK;
    }
    snapshot.clear_zones();
    const auto count = static_cast<double>(state_->samples);
    const std::string& name = request->name();
    *snapshot.add_stats() =
        MakeStat(name, "memtuned_zone_free_bytes",
                 static_cast<double>(kZoneBytes / 2), v1::STAT_TYPE_GAUGE);
    *snapshot.add_stats() = MakeStat(name, "memtuned_pageset_refills_total",
                                     1000 * count, v1::STAT_TYPE_COUNTER);
    v1::Stat& wait = *snapshot.add_stats();
    wait = MakeStat(name, "memtuned_zone_lock_wait_seconds", 0,
                    v1::STAT_TYPE_HISTOGRAM);
    wait.mutable_histogram()->set_count(static_cast<int64_t>(4 * count));
    wait.mutable_histogram()->set_sum(0.002 * count);
    return grpc::Status::OK;
  }

  // One zone a page.
  grpc::Status ListZones(grpc::ServerContext* context,
                         const v1::ListZonesRequest* request,
                         v1::ListZonesResponse* response) override {
    const grpc::Status entered =
        state_->Enter("ListZones", request->parent(), *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const int node = request->page_token().empty() ? 0 : 1;
    *response->add_zones() = MakeZone(request->parent(), node, 1);
    if (node == 0) response->set_next_page_token("1");
    FillSample(*state_, request->parent(), 1, *response->mutable_sample());
    return grpc::Status::OK;
  }

  grpc::Status ListPagesets(grpc::ServerContext* context,
                            const v1::ListPagesetsRequest* request,
                            v1::ListPagesetsResponse* response) override {
    const std::string& subject = request->parent();
    const grpc::Status entered =
        state_->Enter("ListPagesets", subject, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    ++state_->samples;
    FillSample(*state_, subject, state_->samples, *response->mutable_sample());
    for (int node = 0; node < 2; ++node) {
      if (request->view() != v1::PAGESET_VIEW_CPU) {
        *response->add_zones() = MakeZone(subject, node, state_->samples);
        continue;
      }
      for (int cpu = 0; cpu < 2; ++cpu) {
        v1::Pageset& pageset = *response->add_pagesets();
        pageset.set_name(subject + "/nodes/" + std::to_string(node) +
                         "/zones/Normal/pagesets/" + std::to_string(cpu));
        pageset.set_cpu(cpu);
        pageset.set_pages(31);
        pageset.set_batch(63);
        pageset.set_high(500);
        pageset.set_high_clamped(378);
        pageset.set_high_min(378);
        pageset.set_high_max(378);
        pageset.add_pages_by_order(23);
        pageset.add_pages_by_order(8);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status ListProcesses(grpc::ServerContext* context,
                             const v1::ListProcessesRequest* request,
                             v1::ListProcessesResponse* response) override {
    const grpc::Status entered =
        state_->Enter("ListProcesses", request->parent(), *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    FillSample(*state_, request->parent(), 1, *response->mutable_sample());
    v1::Process& process = *response->add_processes();
    process.set_name(request->parent() + "/processes/3-17");
    process.set_pid(4242);
    process.set_uid(1000);
    process.set_state(v1::PROCESS_STATE_RUNNING);
    process.set_threads(2);
    process.set_allocated_bytes(int64_t{5} << 20);
    process.mutable_attach_time()->set_seconds(kEpoch - 299);
    process.add_mems_allowed(0);
    process.add_mems_allowed(1);
    process.set_command("memtune-load");
    process.set_peak_bytes(int64_t{7} << 20);
    process.set_limit_bytes(int64_t{8} << 20);
    process.mutable_active_time()->set_seconds(kEpoch - 1);
    for (const int64_t blocks : {12, 0, 0, 1}) process.add_held_blocks(blocks);
    if (request->view() == v1::PROCESS_VIEW_NODES) {
      for (int node = 0; node < 2; ++node) {
        v1::NodeHoldings& row = *process.add_nodes();
        row.set_node(node);
        row.set_bytes(int64_t{3 - node} << 20);
        row.set_offered_bytes(node * 4096);
        row.add_held_blocks(7);
      }
    }
    if (state_->holder_stopped) AddStopped(process, *response);
    if (state_->pid_twice) {
      *response->add_processes() = process;
      response->mutable_processes(1)->set_name("pools/default/processes/4-2");
    }
    return grpc::Status::OK;
  }

  grpc::Status WatchSnapshots(
      grpc::ServerContext* context, const v1::WatchSnapshotsRequest* request,
      grpc::ServerWriter<v1::WatchSnapshotsResponse>* writer) override {
    const grpc::Status entered =
        state_->Enter("WatchSnapshots", request->name(), *context);
    if (!entered.ok()) return entered;
    for (int sent = 1; !context->IsCancelled(); ++sent) {
      v1::WatchSnapshotsResponse response;
      bool behind = false, over = false;
      {
        const std::lock_guard<std::mutex> lock(state_->mutex);
        *response.mutable_snapshot() =
            MakeSnapshot(*state_, request->name(), sent);
        behind = sent == state_->fell_behind_after;
        over = sent == state_->watch_ends_after;
      }
      if (!writer->Write(response)) break;
      if (behind) {
        v1::WatchSnapshotsResponse missed;
        missed.mutable_fell_behind()->set_missed(3);
        writer->Write(missed);
      }
      if (over) {
        return MakeError(grpc::StatusCode::UNAVAILABLE,
                         "the daemon is stopping", "STOPPING");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return grpc::Status::OK;
  }

 private:
  // The same process again, in everybody's way.
  static void AddStopped(v1::Process process,
                         v1::ListProcessesResponse& response) {
    process.set_name("pools/default/processes/4-2");
    process.set_state(v1::PROCESS_STATE_STOPPED);
    process.mutable_stopped()->set_seconds(12);
    process.set_own_limit(true);
    process.clear_limit_bytes();
    v1::HeldLock& zone = *process.add_holds();
    zone.set_lock("zone");
    zone.set_where("nodes/0/zones/Normal");
    zone.mutable_stopped()->set_seconds(12);
    v1::HeldLock& tuning = *process.add_holds();
    tuning.set_lock("tuning");
    tuning.mutable_stopped()->set_seconds(3);
    *response.add_processes() = process;
  }

  FakeState* const state_;
};

}  // namespace

v1::Snapshot MakeSnapshot(const FakeState& state, const std::string& subject,
                          int64_t sample) {
  v1::Snapshot snapshot;
  snapshot.set_name(subject);
  FillSample(state, subject, sample, *snapshot.mutable_sample());
  snapshot.set_page_size_bytes(4096);
  snapshot.set_ready(true);
  for (int node = 0; node < 2; ++node) {
    *snapshot.add_zones() = MakeZone(subject, node, sample);
  }
  return snapshot;
}

std::unique_ptr<v1::StatsService::Service> MakeStatsService(FakeState* state) {
  return std::make_unique<FakeStats>(state);
}

}  // namespace memtuned::ctl
