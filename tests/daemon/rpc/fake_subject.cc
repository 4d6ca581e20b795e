// SPDX-License-Identifier: Apache-2.0
// See the header; nothing here is timed or random.
#include "tests/daemon/rpc/fake_subject.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/cpu_mask.h"

namespace memtuned {
namespace {

constexpr int kPageSize = 4096;
constexpr uint64_t kManagedPages = 1 << 16;

template <class List, class Item>
bool Has(const List& list, const Item& item) {
  return list.empty() ||
         std::find(list.begin(), list.end(), item) != list.end();
}

double Seconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Topology MakeTopology(const FakeOptions& options) {
  Topology topology;
  topology.source = TopologySource::kSynthetic;
  topology.description = "synthetic:test";
  int cpu = 0;
  for (const int node : options.nodes) {
    TopologyNode row;
    row.os_index = node;
    row.memory_bytes = kManagedPages * kPageSize;
    for (int i = 0; i < options.cpus_per_node; ++i) row.cpus.push_back(cpu++);
    row.near_cpus = row.cpus;
    topology.nodes.push_back(std::move(row));
  }
  const size_t count = options.nodes.size();
  topology.distances.assign(count, std::vector<int>(count, 20));
  for (size_t i = 0; i < count; ++i) topology.distances[i][i] = 10;
  return topology;
}

}  // namespace

FakeSubject::FakeSubject(FakeOptions options)
    : options_(std::move(options)), topology_(MakeTopology(options_)) {
  MutexLock lock(mutex_);
  for (const TunableDef& def : TunableTable()) {
    values_[static_cast<size_t>(def.id)] = DefaultValue(def);
    origins_[static_cast<size_t>(def.id)] = "default";
  }
  const int cpus =
      static_cast<int>(options_.nodes.size()) * options_.cpus_per_node;
  for (const int node : options_.nodes) {
    for (int cpu = 0; cpu < cpus; ++cpu) {
      pagesets_[{node, cpu}] = options_.pages_per_pageset;
    }
  }
}

std::string FakeSubject::EtagLocked() const {
  return absl::StrCat("g", generation_, "-f", foreign_changes_);
}

uint32_t FakeSubject::BatchLocked() const {
  const auto& factor =
      values_[static_cast<size_t>(TunableId::kPagesetBatchFactor)];
  return static_cast<uint32_t>(63 * std::get<double>(factor));
}

SubjectVersion FakeSubject::Version() const {
  MutexLock lock(mutex_);
  return {generation_, EtagLocked()};
}

ZoneSnapshot FakeSubject::ZoneLocked(int node, bool full) const {
  ZoneSnapshot zone;
  zone.node = node;
  zone.zone = "Normal";
  zone.present_pages = zone.managed_pages = kManagedPages;
  zone.free_pages = kManagedPages / 2;
  zone.free_blocks[10] = zone.free_pages >> 10;
  zone.watermark_min_pages = 100;
  zone.watermark_low_pages = 200;
  zone.watermark_high_pages = 300;
  zone.batch = BatchLocked();
  zone.high_min = zone.high_max = 6 * zone.batch;
  zone.limits_stale = false;
  zone.refills = 7;
  zone.refilled_pages = 7 * zone.batch;
  zone.lock.acquisitions = 9;
  zone.lock.contended = 2;
  zone.lock.wait_seconds = 3e-6;
  zone.lock.wait_buckets[1] = 1;
  zone.lock.wait_buckets[2] = 1;
  for (auto at = pagesets_.lower_bound({node, 0});
       at != pagesets_.end() && at->first.first == node; ++at) {
    const auto& [key, pages] = *at;
    ++zone.cpus;
    zone.pageset_pages_sum += pages;
    zone.pageset_pages_max = std::max(zone.pageset_pages_max, pages);
    if (!full) continue;
    PagesetSnapshot row;
    row.cpu = key.second;
    row.pages = pages;
    row.high = row.high_clamped = zone.high_min;
    row.pages_by_order[0] = pages;
    zone.pagesets.push_back(row);
  }
  return zone;
}

absl::StatusOr<Snapshot> FakeSubject::TakeSnapshot(bool full) {
  MutexLock lock(mutex_);
  if (!snapshot_error_.ok()) return snapshot_error_;
  ++snapshots_;
  if (full) ++full_snapshots_;
  Snapshot snapshot;
  snapshot.subject = options_.name;
  snapshot.unix_seconds = Seconds();
  snapshot.generation = generation_;
  snapshot.etag = EtagLocked();
  snapshot.page_size_bytes = kPageSize;
  snapshot.policy = std::get<std::string>(values_[0]);
  snapshot.ready = true;
  snapshot.tunables = values_;
  for (const int node : options_.nodes) {
    snapshot.zones.push_back(ZoneLocked(node, full));
    NodeSnapshot row;
    row.node = node;
    row.numa_pages[0] = 5;
    snapshot.nodes.push_back(row);
    snapshot.size_bytes += kManagedPages * kPageSize;
  }
  snapshot.initialised_bytes = snapshot.size_bytes;
  for (int i = 0; i < options_.processes; ++i) {
    ProcessSnapshot process;
    process.slot = static_cast<uint32_t>(i);
    process.generation = 17;
    process.pid = 1000 + i;
    process.allocated_pages = 2;
    process.mems_allowed = options_.nodes;
    process.command = "worker";
    process.peak_pages = 3;
    process.held_blocks[0] = 2;
    if (const auto* limit = std::get_if<int64_t>(&process_limit_);
        limit != nullptr && i == 0) {
      process.own_limit = true;
      process.limit_pages = static_cast<uint64_t>(*limit) / kPageSize;
    }
    snapshot.processes.push_back(process);
  }
  return snapshot;
}

std::vector<TunableState> FakeSubject::Tunables() const {
  MutexLock lock(mutex_);
  std::vector<TunableState> states;
  for (const TunableDef& def : TunableTable()) {
    const auto index = static_cast<size_t>(def.id);
    TunableState state;
    state.def = &def;
    state.value = values_[index];
    state.origin = origins_[index];
    state.changed_generation = origins_[index] == "change" ? generation_ : 0;
    state.writable = read_only_[index].empty();
    state.read_only_reason = read_only_[index];
    states.push_back(state);
  }
  return states;
}

absl::Status FakeSubject::CheckEtagLocked(const ChangeContext& context) const {
  if (context.etag.empty() || context.etag == EtagLocked()) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("etag is ", context.etag,
                                         ", the subject's is ", EtagLocked()));
}

ChangeResult FakeSubject::ResultLocked(uint32_t batch_before) const {
  ChangeResult result;
  result.generation = generation_;
  result.etag = EtagLocked();
  if (batch_before == BatchLocked()) return result;
  for (const int node : options_.nodes) {
    result.effects.push_back({absl::StrCat("nodes/", node, "/zones/Normal"),
                              "batch", "pages", batch_before, BatchLocked()});
  }
  return result;
}

absl::StatusOr<ChangeResult> FakeSubject::Apply(
    const std::vector<TunableAssignment>& assignments,
    const ChangeContext& context) {
  MutexLock lock(mutex_);
  const absl::Status etag = CheckEtagLocked(context);
  if (!etag.ok()) return etag;
  std::this_thread::sleep_for(apply_time_);
  const auto old_values = values_;
  const uint32_t batch_before = BatchLocked();
  std::vector<ValueChange> changes;
  for (const TunableAssignment& assignment : assignments) {
    const TunableDef* def = FindTunable(assignment.tunable);
    if (def == nullptr) return absl::InvalidArgumentError("unknown tunable");
    auto& value = values_[static_cast<size_t>(def->id)];
    changes.push_back(
        {"", assignment.tunable, value, assignment.value, assignment.value});
    value = assignment.value;
  }
  if (!context.validate_only) {
    ++generation_;
    ++applied_;
    for (const TunableAssignment& assignment : assignments) {
      origins_[static_cast<size_t>(FindTunable(assignment.tunable)->id)] =
          "change";
    }
  }
  ChangeResult result = ResultLocked(batch_before);
  result.values = std::move(changes);
  if (context.validate_only) values_ = old_values;
  return result;
}

absl::StatusOr<ChangeResult> FakeSubject::Recalculate(
    const Scope&, const ChangeContext& context) {
  MutexLock lock(mutex_);
  const absl::Status etag = CheckEtagLocked(context);
  if (!etag.ok()) return etag;
  if (!context.validate_only) {
    ++generation_;
    ++applied_;
  }
  return ResultLocked(BatchLocked());
}

absl::StatusOr<DrainResult> FakeSubject::Drain(const Scope& scope,
                                               const ChangeContext& context) {
  MutexLock lock(mutex_);
  const absl::Status etag = CheckEtagLocked(context);
  if (!etag.ok()) return etag;
  DrainResult result;
  for (const int node : options_.nodes) {
    if (!Has(scope.nodes, node) || !Has(scope.zones, std::string("Normal"))) {
      continue;
    }
    ZoneDrain zone;
    zone.node = node;
    zone.zone = "Normal";
    for (auto& [key, pages] : pagesets_) {
      if (key.first != node) continue;
      zone.pages_before += pages;
      if (!Has(scope.cpus, key.second) || context.validate_only) continue;
      zone.by_cpu.emplace_back(key.second, pages);
      pages = 0;
    }
    for (const auto& [key, pages] : pagesets_) {
      if (key.first == node) zone.pages_after += pages;
    }
    zone.largest_free_order_before = zone.largest_free_order_after = 10;
    result.zones.push_back(std::move(zone));
  }
  if (!context.validate_only) {
    ++generation_;
    ++applied_;
  }
  result.change = ResultLocked(BatchLocked());
  return result;
}

absl::StatusOr<ChangeResult> FakeSubject::SetProcessLimit(
    const ProcessId& process, const TunableValue& value,
    const ChangeContext& context) {
  MutexLock lock(mutex_);
  const absl::Status etag = CheckEtagLocked(context);
  if (!etag.ok()) return etag;
  if (static_cast<int>(process.slot) >= options_.processes ||
      process.generation != 17) {
    return absl::NotFoundError("no process " + process.Text());
  }
  const TunableValue before = process_limit_;
  if (!context.validate_only) {
    process_limit_ = value;
    ++generation_;
    ++applied_;
  }
  ChangeResult result = ResultLocked(BatchLocked());
  result.values = {{"processes/" + process.Text(), "process.max_bytes", before,
                    value, value}};
  return result;
}

absl::StatusOr<ChangeResult> FakeSubject::SetMemsAllowed(
    const ProcessId& process, const std::optional<std::vector<int>>& nodes,
    const ChangeContext& context) {
  MutexLock lock(mutex_);
  const absl::Status etag = CheckEtagLocked(context);
  if (!etag.ok()) return etag;
  if (process.generation != 17) {
    return absl::NotFoundError("no process " + process.Text());
  }
  const TunableValue before = process_mems_;
  TunableValue value = AutoValue{};
  if (nodes) value = FormatCpuList(*nodes);
  if (!context.validate_only) {
    process_mems_ = value;
    ++generation_;
    ++applied_;
  }
  ChangeResult result = ResultLocked(BatchLocked());
  result.values = {
      {"processes/" + process.Text(), "mems_allowed", before, value, value}};
  return result;
}

std::vector<NodeHoldings> FakeSubject::Holdings(const ProcessId& process) {
  if (process.generation != 17) return {};
  NodeHoldings first;
  first.node = options_.nodes.front();
  first.pages = first.blocks[0] = 2;
  first.offered_pages = 1;
  return {first};
}

void FakeSubject::SetForeign(TunableId id, TunableValue value) {
  MutexLock lock(mutex_);
  values_[static_cast<size_t>(id)] = std::move(value);
  origins_[static_cast<size_t>(id)] = "foreign";
  ++foreign_changes_;
}

void FakeSubject::SetReadOnly(TunableId id, const std::string& reason) {
  MutexLock lock(mutex_);
  read_only_[static_cast<size_t>(id)] = reason;
}

void FakeSubject::SetSnapshotError(absl::Status status) {
  MutexLock lock(mutex_);
  snapshot_error_ = std::move(status);
}

void FakeSubject::SetApplyTime(std::chrono::milliseconds time) {
  MutexLock lock(mutex_);
  apply_time_ = time;
}

int FakeSubject::snapshots_taken() const {
  MutexLock lock(mutex_);
  return snapshots_;
}

int FakeSubject::full_snapshots_taken() const {
  MutexLock lock(mutex_);
  return full_snapshots_;
}

int FakeSubject::applied() const {
  MutexLock lock(mutex_);
  return applied_;
}

}  // namespace memtuned
