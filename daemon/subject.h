// SPDX-License-Identifier: Apache-2.0
// The one interface that unites what memtuned watches and tunes: a pool it
// owns, and (later) the host's kernel. Services, metrics and the sampler talk
// to a Subject and never ask which one it is. Floor 2b.
#ifndef MEMTUNED_DAEMON_SUBJECT_H_
#define MEMTUNED_DAEMON_SUBJECT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/topology.h"
#include "core/stats.h"
#include "core/tunables.h"
#include "daemon/user_list.h"

namespace memtuned {

// What a change or a query is limited to; empty lists mean everything.
struct Scope {
  std::vector<int> nodes;          // os indexes
  std::vector<std::string> zones;  // "Normal", "Movable"
  std::vector<int> cpus;           // drain only
  bool Everything() const {
    return nodes.empty() && zones.empty() && cpus.empty();
  }
};

// One tunable as it stands now.
struct TunableState {
  const TunableDef* def = nullptr;
  TunableValue value;  // effective now, re-read
  std::string origin;  // "default", "config", "change", "foreign"
  int64_t changed_generation = 0;
  bool writable = true;
  std::string read_only_reason;
  bool reversible = true;
};

struct TunableAssignment {
  std::string tunable;
  TunableValue value;
};

// One value a change touched.
struct ValueChange {
  std::string scope;  // "processes/3-17"; "": the whole subject
  std::string tunable;
  TunableValue before, requested, after;  // after: re-read
};

// A predicted consequence: limits and watermarks that move with a change.
struct Effect {
  std::string where;  // "nodes/0/zones/Normal"
  std::string what;   // "batch", "pageset high_min", "watermark low"
  std::string unit;   // "pages" or "bytes"
  int64_t before = 0, after = 0;
};

// The outcome of set and recalculate.
struct ChangeResult {
  int64_t generation = 0;  // of the subject, after
  std::string etag;
  std::vector<ValueChange> values;
  std::vector<Effect> effects;
};

// A process attached to a pool: "3-17".
struct ProcessId {
  uint32_t slot = 0, generation = 0;
  std::string Text() const {
    return std::to_string(slot) + "-" + std::to_string(generation);
  }
};

// Who asks, and why: kept with every change.
struct ChangeContext {
  std::string caller;  // "uid:1000"
  std::string reason;
  std::string request_id;
  std::string etag;  // "" or the one the caller read
  bool validate_only = false;
};

struct ZoneDrain {
  int node = 0;
  std::string zone;
  int64_t pages_before = 0, pages_after = 0;  // in pagesets and depot
  int64_t lru_batch_pages = 0;
  int largest_free_order_before = -1, largest_free_order_after = -1;
  // (cpu, pages) of what each CPU's pageset gave back.
  std::vector<std::pair<int, int64_t>> by_cpu;
};

struct DrainResult {
  ChangeResult change;
  std::vector<ZoneDrain> zones;
  std::vector<std::string> not_drained;  // what could not be, and why
};

// What moves with every change; etag also when somebody else changed a value.
struct SubjectVersion {
  int64_t generation = 0;
  std::string etag;
};

// Thread safety: any thread.
class Subject {
 public:
  virtual ~Subject() = default;

  virtual const std::string& name() const = 0;  // "pools/default"
  virtual const char* kind() const = 0;         // "pool", "host"
  virtual const Topology& topology() const = 0;

  // As of now, not as of the last snapshot.
  virtual SubjectVersion Version() const = 0;

  // Takes a new snapshot. Takes no lock that allocating threads take; `full`
  // adds per-CPU pagesets. Called by the sampler only: everybody else reads
  // the sampler's copy.
  virtual absl::StatusOr<Snapshot> TakeSnapshot(bool full) = 0;

  virtual std::vector<TunableState> Tunables() const = 0;

  // All or nothing. Errors: kInvalidArgument (value, unknown name),
  // kAborted (etag), kFailedPrecondition (read only).
  virtual absl::StatusOr<ChangeResult> Apply(
      const std::vector<TunableAssignment>& assignments,
      const ChangeContext& context) = 0;

  // Recomputes pageset limits and watermarks from today's facts.
  virtual absl::StatusOr<ChangeResult> Recalculate(
      const Scope& scope, const ChangeContext& context) = 0;

  // Returns pages in pagesets and depot to their zones; changes no limit.
  virtual absl::StatusOr<DrainResult> Drain(const Scope& scope,
                                            const ChangeContext& context) = 0;

  // What a process may hold: an integer, bytes or 0 for no limit, in place of
  // the tunable process.max_bytes; AutoValue: as that has it.
  // Errors: kInvalidArgument (value), kNotFound, kAborted (etag).
  virtual absl::StatusOr<ChangeResult> SetProcessLimit(
      const ProcessId& process, const TunableValue& value,
      const ChangeContext& context) = 0;

  // The nodes a process may allocate from; nothing: all of them, as at first.
  // Errors: kInvalidArgument (nodes), kNotFound, kAborted (etag).
  virtual absl::StatusOr<ChangeResult> SetMemsAllowed(
      const ProcessId& process, const std::optional<std::vector<int>>& nodes,
      const ChangeContext& context) = 0;

  // What a process holds of each node, found by reading the description of
  // all the memory it ever used: up to a second for a process of a TiB.
  // One call at a time works, others wait. Empty for one that is gone.
  virtual std::vector<NodeHoldings> Holdings(const ProcessId& process) = 0;

  // Who may use it from now on; nothing to a subject without a socket of its
  // own.
  virtual void SetUsers(const PoolUsers& users) { static_cast<void>(users); }
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_SUBJECT_H_
