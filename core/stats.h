// SPDX-License-Identifier: Apache-2.0
// What a subject looks like at one moment (Snapshot), and the table that says
// which number of it is which metric. The Prometheus collector, `memtunectl
// stats` and the README walk the same table. Floor 2.
#ifndef MEMTUNED_CORE_STATS_H_
#define MEMTUNED_CORE_STATS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tunables.h"

namespace memtuned {

inline constexpr int kStatOrders = 11;      // block orders 0..10
inline constexpr int kNumOrderClasses = 4;  // 0, 1_3, 4_8, 9_10
// Class of an order, 0 to 10, and its name: "0", "1_3", "4_8", "9_10".
int OrderClass(int order);
const char* OrderClassName(int order_class);
inline constexpr int kNumWaitBuckets = 10;  // histogram of contended waits

// Upper bounds of the wait histogram, seconds; the last is +Inf.
inline constexpr std::array<double, kNumWaitBuckets> kWaitBucketBounds = {
    250e-9, 1e-6, 4e-6, 16e-6, 64e-6, 256e-6, 1e-3, 4e-3, 16e-3, 1e300};

struct LockStats {
  uint64_t acquisitions = 0;
  uint64_t contended = 0;
  double wait_seconds = 0;
  std::array<uint64_t, kNumWaitBuckets> wait_buckets{};  // not cumulative
};

enum class FlushCause { kHigh, kFreeHigh, kDrain, kDecay, kCount };
const char* FlushCauseName(FlushCause cause);  // "high", "free_high", ...

enum class NumaEvent {
  kHit,
  kMiss,
  kForeign,
  kLocal,
  kOther,
  kInterleave,
  kCount
};
const char* NumaEventName(NumaEvent event);

// One CPU's pageset of one zone. Pages, not bytes.
struct PagesetSnapshot {
  int cpu = 0;
  uint32_t pages = 0;
  uint32_t high = 0;          // as stored: clamped lazily, on the next use
  uint32_t high_clamped = 0;  // what the next operation will use
  std::array<uint32_t, kStatOrders> pages_by_order{};
};

enum class ZoneState { kReady, kInitialising, kNotSetUp, kDegraded };

struct ZoneSnapshot {
  int node = 0;      // os index
  std::string zone;  // "Normal", "Movable"
  ZoneState state = ZoneState::kReady;
  uint64_t present_pages = 0;  // size once initialised
  uint64_t managed_pages = 0;  // handed to the allocator so far
  uint64_t free_pages = 0;     // without pagesets and depot
  uint64_t depot_pages = 0;    // whole batches parked between the two
  uint64_t watermark_min_pages = 0, watermark_low_pages = 0,
           watermark_high_pages = 0, watermark_promo_pages = 0,
           watermark_boost_pages = 0;
  std::array<uint64_t, kStatOrders> free_blocks{};
  int cpus = 0;  // pagesets of the zone (online CPUs)
  uint32_t batch = 0, high_min = 0, high_max = 0;
  // Over online CPUs; a pageset never used counts as 0 pages.
  uint64_t pageset_pages_sum = 0;
  uint32_t pageset_pages_min = 0, pageset_pages_median = 0,
           pageset_pages_max = 0;
  uint32_t pageset_high_min = 0, pageset_high_median = 0,
           pageset_high_max = 0;  // clamped
  std::optional<bool> limits_stale;
  uint32_t expected_batch = 0, expected_high_min = 0, expected_high_max = 0;
  // Which zone sizes the limits in force fit, when stale.
  uint64_t fits_min_pages = 0, fits_max_pages = 0;
  LockStats lock;
  uint64_t lock_hold_pages_max = 0;  // pages moved in one hold, since start
  uint64_t refills = 0, refilled_pages = 0;
  std::array<uint64_t, static_cast<int>(FlushCause::kCount)> flushes{};
  std::array<uint64_t, static_cast<int>(FlushCause::kCount)> flushed_pages{};
  uint64_t trylock_misses = 0;
  uint64_t depot_pushes = 0, depot_pops = 0;
  std::array<uint64_t, kNumOrderClasses> allocations{}, frees{};
  std::vector<PagesetSnapshot> pagesets;  // ever used ones; FULL view only
};

struct NodeSnapshot {
  int node = 0;
  std::array<uint64_t, static_cast<int>(NumaEvent::kCount)> numa_pages{};
};

enum class ProcessState { kRunning, kStopped, kReaping };

// A lock that a stopped process holds.
struct HeldLock {
  std::string lock;    // "zone", "pageset", "depot", "tuning"
  std::string where;   // "nodes/0/zones/Normal"; "" for the pool's
  double seconds = 0;  // since it was first seen like this
};

struct ProcessSnapshot {
  uint32_t slot = 0, generation = 0;  // id "slot-generation"
  int pid = 0;
  uint32_t uid = 0;
  uint64_t start_time_ticks = 0;  // tells reused pids apart
  ProcessState state = ProcessState::kRunning;
  int threads = 0;
  uint64_t allocated_pages = 0;
  uint64_t peak_pages = 0;   // core/process_accounts.h says how exact it is
  uint64_t limit_pages = 0;  // 0: none
  bool own_limit = false;    // not the pool's
  std::array<uint64_t, kStatOrders> held_blocks{};
  // Blocks taken and given back since it attached.
  uint64_t operations = 0;
  double attached_unix_seconds = 0;
  std::vector<int> mems_allowed;

  // The rest is the daemon's (daemon/pool/process_monitor.h).
  std::string command;  // from /proc/PID/comm, "" when gone
  // Of the last sample at which `operations` had moved.
  double active_unix_seconds = 0;
  double stopped_seconds = 0;  // since it was first seen stopped
  std::vector<HeldLock> holds;
};

// What a process holds, found in the memmap.
struct NodeHoldings {
  int node = 0;
  uint64_t pages = 0;
  // Of these: allocated as purgeable, and on offer to others.
  uint64_t purgeable_pages = 0, offered_pages = 0;
  std::array<uint64_t, kStatOrders> blocks{};
};

// A whole subject. Plain values: copied, cached, shared as const.
struct Snapshot {
  std::string subject;          // "pools/default"
  double unix_seconds = 0;      // when it was taken
  double duration_seconds = 0;  // how long taking it took
  int64_t generation = 0;
  std::string etag;
  int64_t page_size_bytes = 4096;
  std::string policy;
  bool ready = false, degraded = false, write_locked = false;
  std::string degraded_reason;
  std::vector<ZoneSnapshot> zones;  // by node, then kernel zone order
  std::vector<NodeSnapshot> nodes;
  std::vector<ProcessSnapshot> processes;
  uint64_t size_bytes = 0, initialised_bytes = 0;
  std::map<std::string, uint64_t> recalculations;       // by trigger
  std::map<std::string, uint64_t> allocation_failures;  // by reason
  std::map<std::string, uint64_t> refused_frees;        // by reason
  uint64_t mems_allowed_retries = 0;
  std::map<std::string, uint64_t> lock_takeovers;  // by lock
  // The daemon's: since it started.
  std::map<std::string, uint64_t> refused_attaches;  // by reason
  uint64_t observers = 0;  // connections of those who only read, now
  std::array<TunableValue, kNumTunables> tunables;
  std::array<bool, kNumTunables> tunable_foreign{};
};

enum class StatType { kCounter, kGauge, kHistogram };

using StatLabels = std::vector<std::pair<std::string, std::string>>;

// Receives the samples of one family.
struct StatSink {
  std::function<void(StatLabels, double)> value;
  // Non-cumulative bucket counts over kWaitBucketBounds, and the sum.
  std::function<void(StatLabels, std::span<const uint64_t>, double sum)>
      histogram;
};

// One metric family. Labels start with subject, then node, zone.
struct StatDef {
  const char* name;  // "memtuned_zone_free_bytes"
  StatType type;
  const char* help;  // names the kernel field where there is one
  bool per_cpu;      // only with --metrics-per-cpu
  void (*read)(const Snapshot& snapshot, const StatSink& sink);
};

std::span<const StatDef> StatTable();

}  // namespace memtuned

#endif  // MEMTUNED_CORE_STATS_H_
