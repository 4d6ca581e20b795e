// SPDX-License-Identifier: Apache-2.0
// A pool as a Subject: owns the segment, the attach server and the workers
// that initialise sections. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_POOL_SUBJECT_H_
#define MEMTUNED_DAEMON_POOL_POOL_SUBJECT_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/recalculate.h"
#include "core/segment.h"
#include "daemon/keeper/fd_store.h"
#include "daemon/pool/attach_server.h"
#include "daemon/pool/cpu_watch.h"
#include "daemon/pool/idle_watch.h"
#include "daemon/pool/pool_config.h"
#include "daemon/pool/pool_takeover.h"
#include "daemon/pool/process_monitor.h"
#include "daemon/pool/reaper.h"
#include "daemon/pool/section_workers.h"
#include "daemon/subject.h"

namespace memtuned {

// Thread safety: any thread. Changes are serialised by mutex_; snapshots take
// no lock that allocating threads take.
class PoolSubject : public Subject {
 public:
  // Goes on with the pool of that name that an earlier daemon left in `store`
  // (see TakeOverPool), else creates the segment; goes on initialising it and
  // opens the attach socket. What the next daemon needs is stored meanwhile.
  // Errors: kInvalidArgument (sizes, tunables), kResourceExhausted (memory),
  // kUnavailable (socket).
  // REQUIRES: `store` outlives this.
  static absl::StatusOr<std::unique_ptr<PoolSubject>> Create(
      const PoolConfig& config, const Topology& topology, FdStore* store);
  // Closes the socket. Without an attached process that is the pool's end;
  // else `store` keeps it, and the processes go on.
  ~PoolSubject() override;

  const std::string& name() const override { return name_; }
  const char* kind() const override { return "pool"; }
  const Topology& topology() const override { return topology_; }
  SubjectVersion Version() const override;
  absl::StatusOr<Snapshot> TakeSnapshot(bool full) override;
  std::vector<TunableState> Tunables() const override;
  absl::StatusOr<ChangeResult> Apply(
      const std::vector<TunableAssignment>& assignments,
      const ChangeContext& context) override;
  absl::StatusOr<ChangeResult> Recalculate(
      const Scope& scope, const ChangeContext& context) override;
  absl::StatusOr<DrainResult> Drain(const Scope& scope,
                                    const ChangeContext& context) override;

  absl::StatusOr<ChangeResult> SetProcessLimit(
      const ProcessId& process, const TunableValue& value,
      const ChangeContext& context) override;
  absl::StatusOr<ChangeResult> SetMemsAllowed(
      const ProcessId& process, const std::optional<std::vector<int>>& nodes,
      const ChangeContext& context) override;
  std::vector<NodeHoldings> Holdings(const ProcessId& process) override;

  void SetUsers(const PoolUsers& users) override { attach_->SetUsers(users); }

  Segment& segment() { return *segment_; }

 private:
  PoolSubject(const PoolConfig& config, const Topology& topology,
              FdStore* store);
  void StoreFiles(const TakenPool& taken);
  absl::Status Start(const PoolConfig& config, TakenPool taken);
  void HandOn();

  // Zone numbers a scope names. Errors: kInvalidArgument naming what does not
  // exist.
  absl::StatusOr<std::vector<uint32_t>> ZonesOf(const Scope& scope) const;
  absl::Status CheckEtag(const std::string& etag) const;
  // kUnavailable: a stopped process holds the tuning lock.
  absl::Status TuningBusy() const;
  Patience& RenewedPatience() REQUIRES(mutex_) {
    thread_.patience.Renew();
    return thread_.patience;
  }
  absl::Status StoreTunablesLocked(const std::vector<ValueChange>& values)
      REQUIRES(mutex_);
  void DrainZoneLocked(uint32_t zone, const Scope& scope, bool validate_only,
                       ZoneDrain* out) REQUIRES(mutex_);
  ChangeResult ResultLocked(std::vector<ValueChange> values,
                            std::vector<Effect> effects) const REQUIRES(mutex_);

  const std::string pool_;  // "default"
  const std::string name_;  // "pools/default"
  const Topology topology_;
  FdStore* const store_;
  std::unique_ptr<Segment> segment_;
  mutable Mutex mutex_;
  ThreadContext thread_ GUARDED_BY(mutex_);  // for drains and changes
  Mutex holdings_mutex_;  // held while memory is looked through
  Mutex watch_mutex_;     // held while processes are looked at
  std::unique_ptr<ProcessMonitor> processes_ GUARDED_BY(watch_mutex_);
  std::unique_ptr<SectionWorkers> workers_;
  std::unique_ptr<IdleWatch> idle_;
  std::unique_ptr<CpuWatch> cpus_;  // live machine only
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<AttachServer> attach_;
};

// Where a tunable's value comes from, as it stands in the segment.
enum class TunableOrigin : uint32_t { kDefault = 0, kConfig = 1, kChange = 2 };

// What moves when limits and watermarks go from now to `targets`.
std::vector<Effect> EffectsOf(Segment& segment,
                              const std::vector<ZoneTargets>& targets,
                              bool limits);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_POOL_SUBJECT_H_
