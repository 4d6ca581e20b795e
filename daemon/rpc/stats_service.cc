// SPDX-License-Identifier: Apache-2.0
// Lists and the snapshot as a whole; the stream is in watch_service.cc. Each
// method finds its sample, skips to the page's position and fills until the
// page or the reply is full.
#include "daemon/rpc/stats_service.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/names.h"
#include "daemon/rpc/paging.h"

namespace memtuned {
namespace {

using SnapshotPtr = std::shared_ptr<const Snapshot>;

// What a request names, with the sample it is answered from.
struct Target {
  ResourceName name;
  SnapshotPtr snapshot;
};

absl::Status CheckExists(const ResourceName& name, const Snapshot& snapshot) {
  if (!name.node) return absl::OkStatus();
  std::vector<std::string> known;
  for (const ZoneSnapshot& zone : snapshot.zones) {
    if (zone.node == *name.node &&
        (name.zone.empty() || name.zone == zone.zone)) {
      return absl::OkStatus();
    }
    known.push_back(absl::StrCat("nodes/", zone.node, "/zones/", zone.zone));
  }
  const std::string missing =
      name.zone.empty() ? NodeName(name.subject, *name.node)
                        : ZoneName(name.subject, *name.node, name.zone);
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no zone of ", Quoted(missing),
                                       "; there are ", Listed(known))),
      "NOT_FOUND", {{"name", missing}});
}

absl::StatusOr<Target> FindTarget(const grpc::ServerContext& context,
                                  const Registry& registry,
                                  absl::StatusOr<ResourceName> name,
                                  bool full) {
  if (!name.ok()) return name.status();
  const auto served = registry.Find(name->subject);
  if (!served.ok()) return served.status();
  const SteadyTime deadline = DeadlineOf(context);
  auto snapshot = full ? served->sampler->LatestFull(std::min(
                             deadline, std::chrono::steady_clock::now() +
                                           std::chrono::seconds(10)))
                       : LatestSample(*served, deadline);
  if (!snapshot.ok()) return snapshot.status();
  const absl::Status exists = CheckExists(*name, **snapshot);
  if (!exists.ok()) return exists;
  return Target{*std::move(name), *std::move(snapshot)};
}

bool Selected(const ResourceName& name, const ZoneSnapshot& zone) {
  return (!name.node || *name.node == zone.node) &&
         (name.zone.empty() || name.zone == zone.zone);
}

// Bytes of a reply so far, so that it stays below kMaxReplyBytes.
class Budget {
 public:
  // False when `message` no longer fits; the first always does.
  bool Take(const google::protobuf::Message& message) {
    const size_t size = message.ByteSizeLong() + 8;
    if (used_ > 0 && used_ + size > kMaxReplyBytes) return false;
    used_ += size;
    return true;
  }

 private:
  size_t used_ = 0;
};

// Adds the zones from index `at` on. Returns: where it stopped.
template <class Rows>
size_t AddZones(const Target& target, size_t at, int size, Rows& rows) {
  Budget budget;
  const auto& zones = target.snapshot->zones;
  for (; at < zones.size(); ++at) {
    if (!Selected(target.name, zones[at])) continue;
    if (rows.size() == size) return at;
    v1::Zone row = ToProto(*target.snapshot, zones[at]);
    if (!budget.Take(row)) return at;
    *rows.Add() = std::move(row);
  }
  return at;
}

// Fills zones, then stats. Positions: {zone index, 0}, then {zones, 1 + stat}.
class SnapshotFiller {
 public:
  SnapshotFiller(const Snapshot& snapshot, bool full, int size)
      : snapshot_(snapshot), full_(full), size_(size) {}

  // Returns: the next position, {-1, 0} at the end.
  PagePosition Fill(PagePosition from, bool include_stats, v1::Snapshot& out) {
    const auto num_zones = static_cast<int64_t>(snapshot_.zones.size());
    if (from == PagePosition{0, 0}) {
      FillSubjectStats(snapshot_, out);
    } else {
      out.set_name(snapshot_.subject);
      out.set_page_size_bytes(static_cast<int32_t>(snapshot_.page_size_bytes));
    }
    *out.mutable_sample() = MakeSampleInfo(snapshot_);
    budget_.Take(out);
    int64_t zone = from.first;
    for (; zone < num_zones; ++zone) {
      if (out.zones_size() == size_ || !AddZone(zone, out)) return {zone, 0};
    }
    if (!include_stats) return {-1, 0};
    const int64_t stat = AddStats(std::max<int64_t>(0, from.second - 1), out);
    return stat < 0 ? PagePosition{-1, 0} : PagePosition{num_zones, stat + 1};
  }

 private:
  bool AddZone(int64_t index, v1::Snapshot& out) {
    const ZoneSnapshot& zone = snapshot_.zones[static_cast<size_t>(index)];
    v1::Zone row = ToProto(snapshot_, zone);
    if (full_) {
      for (const PagesetSnapshot& pageset : zone.pagesets) {
        *row.add_cpu_pagesets() = ToProto(snapshot_, zone, pageset);
      }
    }
    if (!budget_.Take(row)) return false;
    *out.add_zones() = std::move(row);
    return true;
  }

  // Returns: the first that did not fit, -1 at the end.
  int64_t AddStats(int64_t from, v1::Snapshot& out) {
    return VisitStats(snapshot_, full_, from, [&](v1::Stat stat) {
      if (!budget_.Take(stat)) return false;
      *out.add_stats() = std::move(stat);
      return true;
    });
  }

  const Snapshot& snapshot_;
  const bool full_;
  const int size_;
  Budget budget_;
};

// Whether a call has used half of the time it was given when it came here.
class HalfTime {
 public:
  explicit HalfTime(const grpc::ServerContext& context) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const SteadyTime deadline = DeadlineOf(context);
    if (deadline < now + std::chrono::hours(1)) {
      end_ = now + (deadline - now) / 2;
    }
  }
  bool Over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  SteadyTime end_ = SteadyTime::max();
};

void AddNodes(const Registry& registry, const Target& target,
              const ProcessSnapshot& process, v1::Process& row) {
  const auto served = registry.Find(target.name.subject);
  if (!served.ok()) return;
  for (const NodeHoldings& node :
       served->subject->Holdings({process.slot, process.generation})) {
    *row.add_nodes() = ToProto(*target.snapshot, node);
  }
}

absl::Status CheckView(int view, int highest, const char* allowed) {
  if (view >= 0 && view <= highest) return absl::OkStatus();
  return BadField("view", absl::StrCat("is ", view, "; allowed ", allowed));
}

}  // namespace

grpc::Status StatsService::GetSnapshot(grpc::ServerContext* context,
                                       const v1::GetSnapshotRequest* request,
                                       v1::GetSnapshotResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "StatsService/GetSnapshot", .resource = request->name()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status view =
      CheckView(request->view(), v1::SNAPSHOT_VIEW_FULL, "BASIC, FULL");
  if (!view.ok()) return ToGrpcStatus(view);
  const auto size = PageSize(request->page_size(), 1000, 1000);
  if (!size.ok()) return ToGrpcStatus(size.status());
  const std::string key =
      absl::StrCat("snapshot ", request->name(), " ", request->view(), " ",
                   request->include_stats());
  const auto from = ParsePageToken(request->page_token(), key);
  if (!from.ok()) return ToGrpcStatus(from.status());
  const bool full = request->view() == v1::SNAPSHOT_VIEW_FULL;
  const auto target =
      FindTarget(*context, *registry_,
                 ParseName(request->name(), "name", NameDepth::kSubject), full);
  if (!target.ok()) return ToGrpcStatus(target.status());

  SnapshotFiller filler(*target->snapshot, full, *size);
  const PagePosition next = filler.Fill(*from, request->include_stats(),
                                        *response->mutable_snapshot());
  if (next.first >= 0) response->set_next_page_token(MakePageToken(key, next));
  return grpc::Status::OK;
}

grpc::Status StatsService::ListZones(grpc::ServerContext* context,
                                     const v1::ListZonesRequest* request,
                                     v1::ListZonesResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "StatsService/ListZones", .resource = request->parent()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto size = PageSize(request->page_size(), 100, 1000);
  if (!size.ok()) return ToGrpcStatus(size.status());
  const std::string key = absl::StrCat("zones ", request->parent());
  const auto from = ParsePageToken(request->page_token(), key);
  if (!from.ok()) return ToGrpcStatus(from.status());
  const auto target = FindTarget(
      *context, *registry_,
      ParseName(request->parent(), "parent", NameDepth::kNode), false);
  if (!target.ok()) return ToGrpcStatus(target.status());

  const size_t at = AddZones(*target, static_cast<size_t>(from->first), *size,
                             *response->mutable_zones());
  if (at < target->snapshot->zones.size()) {
    response->set_next_page_token(
        MakePageToken(key, {static_cast<int64_t>(at), 0}));
  }
  *response->mutable_sample() = MakeSampleInfo(*target->snapshot);
  return grpc::Status::OK;
}

// Positions are {zone index, CPU}: both stay valid when the sample changes.
grpc::Status StatsService::ListPagesets(grpc::ServerContext* context,
                                        const v1::ListPagesetsRequest* request,
                                        v1::ListPagesetsResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "StatsService/ListPagesets", .resource = request->parent()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status view =
      CheckView(request->view(), v1::PAGESET_VIEW_CPU, "ZONE_SUMMARY, CPU");
  if (!view.ok()) return ToGrpcStatus(view);
  const auto size = PageSize(request->page_size(), 1000, 10000);
  if (!size.ok()) return ToGrpcStatus(size.status());
  const bool per_cpu = request->view() == v1::PAGESET_VIEW_CPU;
  const std::string key =
      absl::StrCat("pagesets ", request->parent(), " ", per_cpu);
  const auto from = ParsePageToken(request->page_token(), key);
  if (!from.ok()) return ToGrpcStatus(from.status());
  const auto target = FindTarget(
      *context, *registry_,
      ParseName(request->parent(), "parent", NameDepth::kZone), per_cpu);
  if (!target.ok()) return ToGrpcStatus(target.status());
  *response->mutable_sample() = MakeSampleInfo(*target->snapshot);

  const auto& zones = target->snapshot->zones;
  size_t at = static_cast<size_t>(from->first);
  const auto stop_at = [&](size_t zone, int64_t cpu) {
    response->set_next_page_token(
        MakePageToken(key, {static_cast<int64_t>(zone), cpu}));
    return grpc::Status::OK;
  };
  if (!per_cpu) {
    at = AddZones(*target, at, *size, *response->mutable_zones());
    return at < zones.size() ? stop_at(at, 0) : grpc::Status::OK;
  }
  Budget budget;
  for (int64_t cpu = from->second; at < zones.size(); ++at, cpu = 0) {
    if (!Selected(target->name, zones[at])) continue;
    for (const PagesetSnapshot& pageset : zones[at].pagesets) {
      if (pageset.cpu < cpu) continue;
      v1::Pageset row = ToProto(*target->snapshot, zones[at], pageset);
      if (response->pagesets_size() == *size || !budget.Take(row)) {
        return stop_at(at, pageset.cpu);
      }
      *response->add_pagesets() = std::move(row);
    }
  }
  return grpc::Status::OK;
}

grpc::Status StatsService::ListProcesses(
    grpc::ServerContext* context, const v1::ListProcessesRequest* request,
    v1::ListProcessesResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "StatsService/ListProcesses", .resource = request->parent()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status view =
      CheckView(request->view(), v1::PROCESS_VIEW_NODES, "BASIC, NODES");
  if (!view.ok()) return ToGrpcStatus(view);
  const auto size = PageSize(request->page_size(), 100, 1000);
  if (!size.ok()) return ToGrpcStatus(size.status());
  const bool nodes = request->view() == v1::PROCESS_VIEW_NODES;
  const std::string key =
      absl::StrCat("processes ", request->parent(), nodes ? " nodes" : "");
  const auto from = ParsePageToken(request->page_token(), key);
  if (!from.ok()) return ToGrpcStatus(from.status());
  const auto target = FindTarget(
      *context, *registry_,
      ParseName(request->parent(), "parent", NameDepth::kSubject), false);
  if (!target.ok()) return ToGrpcStatus(target.status());
  *response->mutable_sample() = MakeSampleInfo(*target->snapshot);

  Budget budget;
  const HalfTime half(*context);
  for (const ProcessSnapshot& process : target->snapshot->processes) {
    if (process.slot < from->first) continue;
    const bool full = response->processes_size() == *size ||
                      (nodes && response->processes_size() > 0 && half.Over());
    v1::Process row = ToProto(*target->snapshot, process);
    if (nodes && !full) AddNodes(*registry_, *target, process, row);
    if (full || !budget.Take(row)) {
      response->set_next_page_token(MakePageToken(key, {process.slot, 0}));
      break;
    }
    *response->add_processes() = std::move(row);
  }
  return grpc::Status::OK;
}

}  // namespace memtuned
