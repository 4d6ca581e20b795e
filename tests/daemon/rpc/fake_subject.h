// SPDX-License-Identifier: Apache-2.0
// A pool in a few lines, for tests of what sits above a subject: real
// tunables, versions and all-or-nothing changes over made-up zones.
#ifndef MEMTUNED_TESTS_DAEMON_RPC_FAKE_SUBJECT_H_
#define MEMTUNED_TESTS_DAEMON_RPC_FAKE_SUBJECT_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "daemon/subject.h"

namespace memtuned {

struct FakeOptions {
  std::string name = "pools/default";
  std::vector<int> nodes = {0, 1000};  // os indexes
  int cpus_per_node = 4;
  // A zone has a pageset for each CPU of the machine, as a pool's has.
  uint32_t pages_per_pageset = 10;
  int processes = 0;
};

// Batch is 63 x pageset.batch_factor, high_min is 6 x batch; a drain empties
// the pagesets it names.
//
// Thread safety: any thread.
class FakeSubject : public Subject {
 public:
  explicit FakeSubject(FakeOptions options = {});

  const std::string& name() const override { return options_.name; }
  const char* kind() const override { return "pool"; }
  const Topology& topology() const override { return topology_; }
  SubjectVersion Version() const override EXCLUDES(mutex_);
  absl::StatusOr<Snapshot> TakeSnapshot(bool full) override EXCLUDES(mutex_);
  std::vector<TunableState> Tunables() const override EXCLUDES(mutex_);
  absl::StatusOr<ChangeResult> Apply(
      const std::vector<TunableAssignment>& assignments,
      const ChangeContext& context) override EXCLUDES(mutex_);
  absl::StatusOr<ChangeResult> Recalculate(
      const Scope& scope, const ChangeContext& context) override
      EXCLUDES(mutex_);
  absl::StatusOr<DrainResult> Drain(const Scope& scope,
                                    const ChangeContext& context) override
      EXCLUDES(mutex_);
  // The limit of slot 0 is kept and shown.
  absl::StatusOr<ChangeResult> SetProcessLimit(
      const ProcessId& process, const TunableValue& value,
      const ChangeContext& context) override EXCLUDES(mutex_);
  // Those of slot 0 are kept.
  absl::StatusOr<ChangeResult> SetMemsAllowed(
      const ProcessId& process, const std::optional<std::vector<int>>& nodes,
      const ChangeContext& context) override EXCLUDES(mutex_);
  // Two pages of the first node.
  std::vector<NodeHoldings> Holdings(const ProcessId& process) override
      EXCLUDES(mutex_);

  // Somebody else changes a value.
  void SetForeign(TunableId id, TunableValue value) EXCLUDES(mutex_);
  void SetReadOnly(TunableId id, const std::string& reason) EXCLUDES(mutex_);
  void SetSnapshotError(absl::Status status) EXCLUDES(mutex_);
  // Each Apply takes this long.
  void SetApplyTime(std::chrono::milliseconds time) EXCLUDES(mutex_);
  int snapshots_taken() const EXCLUDES(mutex_);
  int full_snapshots_taken() const EXCLUDES(mutex_);
  int applied() const EXCLUDES(mutex_);

 private:
  absl::Status CheckEtagLocked(const ChangeContext& context) const
      REQUIRES(mutex_);
  std::string EtagLocked() const REQUIRES(mutex_);
  uint32_t BatchLocked() const REQUIRES(mutex_);
  ZoneSnapshot ZoneLocked(int node, bool full) const REQUIRES(mutex_);
  ChangeResult ResultLocked(uint32_t batch_before) const REQUIRES(mutex_);

  const FakeOptions options_;
  Topology topology_;
  mutable Mutex mutex_;
  std::array<TunableValue, kNumTunables> values_ GUARDED_BY(mutex_);
  std::array<std::string, kNumTunables> origins_ GUARDED_BY(mutex_);
  std::array<std::string, kNumTunables> read_only_ GUARDED_BY(mutex_);
  // (node, cpu) -> pages in the pageset.
  std::map<std::pair<int, int>, uint32_t> pagesets_ GUARDED_BY(mutex_);
  TunableValue process_limit_ GUARDED_BY(mutex_) = AutoValue{};
  TunableValue process_mems_ GUARDED_BY(mutex_) = AutoValue{};
  int64_t generation_ GUARDED_BY(mutex_) = 0;
  int64_t foreign_changes_ GUARDED_BY(mutex_) = 0;
  absl::Status snapshot_error_ GUARDED_BY(mutex_);
  std::chrono::milliseconds apply_time_ GUARDED_BY(mutex_){0};
  int snapshots_ GUARDED_BY(mutex_) = 0;
  int full_snapshots_ GUARDED_BY(mutex_) = 0;
  int applied_ GUARDED_BY(mutex_) = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_RPC_FAKE_SUBJECT_H_
