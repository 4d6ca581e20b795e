// SPDX-License-Identifier: Apache-2.0
// A pool's shared memory: one memfd of metadata, one memfd of frames a node.
// Created by the daemon, mapped by it and by every attached process at any
// address: indices, never pointers. Floor 2.
//
// Metadata, in this order, each part aligned to 4 KiB:
//   header | nodes | distances | zonelists | zones | cpu table | online CPUs |
//   processes | process sections | threads | lives | sections |
//   section maps | pagesets | chunks | free areas | memmap
// The large parts at the end are sparse: only what is used costs memory.
#ifndef MEMTUNED_CORE_SEGMENT_H_
#define MEMTUNED_CORE_SEGMENT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/topology.h"
#include "core/mm/mapping.h"
#include "core/mm/zone.h"
#include "core/tunables.h"

namespace memtuned {

inline constexpr uint64_t kSegmentMagic = 0x31646e7574656d6dull;  // "mmetund1"
// Changes with any struct in the segment, or any rule of who writes it.
inline constexpr uint32_t kLayoutVersion = 3;

enum class PopulateMode : uint32_t {
  kReserve = 0,  // frames are allocated before a section is handed out
  kLazy = 1,     // frames appear on first touch; shortage is a SIGBUS
};

// Why limits were recomputed: memtuned_pageset_recalculations_total{trigger}.
enum class RecalculateTrigger : uint32_t {
  kCreated = 0,
  kSection,      // a section was initialised
  kInitialised,  // ... and it was the pool's last
  kCpus,         // a CPU came or went
  kWatermark,    // a watermark tunable was set
  kTunable,      // any other tunable was set
  kRequest,      // an operator asked
  kCount,
};
inline constexpr int kNumTriggers =
    static_cast<int>(RecalculateTrigger::kCount);
const char* TriggerName(RecalculateTrigger trigger);

enum class FailureReason : uint32_t {
  kNoMemory = 0,  // every allowed zone is at its min watermark
  kNotAttached,   // a forked child that has not attached itself
  kInvalidOrder,
  kBusy,          // a lock's holder lives and does not let go: it is stopped
  kProcessLimit,  // the process would hold more than it may
  kCount,
};
inline constexpr int kNumFailureReasons =
    static_cast<int>(FailureReason::kCount);
const char* FailureReasonName(FailureReason reason);

enum class FreeResult : uint32_t {
  kFreed = 0,
  kNotAllocated,  // double or wild free
  kWrongOrder,
  kForeign,      // another process's block, not offered to this one
  kOutOfRange,   // not a page of this pool, or not aligned to the order
  kNotAttached,  // a forked child gave back its parent's block: a no-op
  // Another process holds a lock and is stopped: the block is still the
  // caller's. The number follows the client interface's others.
  kBusy = 14,
  // Adopting it, this process would hold more than it may.
  kProcessLimit = 15,
  kCount,
};
inline constexpr int kNumFreeResults = static_cast<int>(FreeResult::kCount);
// nullptr: no result has this number.
const char* FreeResultName(FreeResult result);

struct NodeShared {
  uint32_t os_index;
  uint32_t first_section, nr_sections;
  uint32_t zone;  // kNil: no memory
  Shared32 online_cpus;
  uint32_t reserved[3];
};

// A change of tunables that is under way: `ids` is stored last, and cleared
// when all its values are in force. Whoever takes the tuning lock over from a
// dead holder ends it, so that a change is made wholly or not at all.
struct TuningChange {
  Shared32 ids;  // bit of each TunableId, 0: none
  Shared32 origin;
  Shared64 generation;
  std::array<Shared64, 32> values;
};

// First bytes of the metadata. Sizes and offsets are constant after creation
// and checked at attach.
struct SegmentHeader {
  uint64_t magic;
  uint32_t layout_version;
  GuardKind guard;    // kTrylock or kBiased
  uint64_t abi_hash;  // sizes and offsets of every shared struct
  uint64_t total_bytes;
  uint64_t page_size_bytes;
  uint32_t nr_nodes, nr_zones, nr_cpus, nr_sections, nr_pages, nr_chunks;
  uint32_t nr_processes, nr_threads;
  uint64_t section_map_words;
  uint64_t llc_pages_per_cpu;
  PopulateMode populate;
  uint32_t reserved;
  std::array<char, 48> name;
  std::array<uint8_t, 16> id;  // random: tells two pools of one name apart

  alignas(64) ShmLock<LockRank::kTuning> tuning_lock;
  Shared32 degraded;    // Degraded
  Shared64 generation;  // completed changes
  // Managed pages of all zones when limits were last computed.
  Shared64 limits_managed_pages;
  // See EncodeTunable. Written under the tuning lock, read by anybody.
  std::array<Shared64, 32> tunables;
  std::array<Shared64, 32> tunable_generations;
  std::array<Shared32, 32> tunable_origins;
  TuningChange change;
  DaemonIdentity daemon;

  alignas(64) std::array<ChunkStack, kNumEmptyStacks> empty_chunks;
  std::array<Shared64, 16> recalculations;  // by RecalculateTrigger
  std::array<Shared64, 16> failures;        // by FailureReason
  std::array<Shared64, 16> refused_frees;   // by FreeResult
  std::array<Shared64, 8> lock_takeovers;   // by LockKind
  Shared64 mems_allowed_retries;

  void Degrade(Degraded reason) {
    if (LoadRelaxed(degraded) == 0) {
      Store(degraded, static_cast<uint32_t>(reason));
    }
  }
};
static_assert(kNumTunables <= 32);

struct SegmentNode {
  int os_index = 0;
  uint64_t pages = 0;  // 0: no zone
};

struct SegmentConfig {
  std::string name;
  Topology topology;
  std::vector<SegmentNode> nodes;  // one for each of topology.nodes
  PopulateMode populate = PopulateMode::kLazy;
  uint32_t nr_processes = 256;
  uint32_t nr_threads = 1024;
  uint64_t llc_pages_per_cpu = 0;  // 0: unknown
  bool with_frames = true;
  // kClosed: kBiased where this machine has what it takes and each of its CPUs
  // plays a CPU of the pool alone; else kTrylock.
  GuardKind guard = GuardKind::kClosed;
  // Sections made available at once in each zone; the rest is left to
  // InitialiseNextSection. kNil: all.
  uint32_t first_sections = 1;
  std::array<TunableValue, kNumTunables> tunables;  // DefaultTunables()
};
std::array<TunableValue, kNumTunables> DefaultTunables();

// A tunable's value as one word: a double's bits, an integer, a choice's
// index; auto is INT64_MIN.
uint64_t EncodeTunable(const TunableDef& def, const TunableValue& value);
TunableValue DecodeTunable(const TunableDef& def, uint64_t word);

// Hash of every shared struct's size and the offsets of its fields.
uint64_t AbiHash();

// One mapping of a pool in this process.
// Thread safety: immutable after Create or Attach; what it points to says its
// own.
class Segment {
 public:
  enum class Access {
    kWrite,
    kRead,  // descriptors may be read-only; nothing is written, ever
  };

  // Errors: kInvalidArgument (a size out of range), kResourceExhausted
  // (memfd or address space).
  static absl::StatusOr<std::unique_ptr<Segment>> Create(
      const SegmentConfig& config);
  // Takes over the descriptors. `frame_fds`: one for each node with memory,
  // in order; empty to map metadata only.
  // Errors: kDataLoss (not a segment, or a broken one), kFailedPrecondition
  // (another layout version or ABI).
  static absl::StatusOr<std::unique_ptr<Segment>> Attach(
      int metadata_fd, std::vector<int> frame_fds,
      Access access = Access::kWrite);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const Mapping& mapping() const { return mapping_; }
  SegmentHeader& header() const { return *header_; }
  NodeShared* nodes() const { return nodes_; }
  // distances()[from * nr_nodes + to], kernel units.
  const uint32_t* distances() const { return distances_; }
  Zone& zone(uint32_t number) { return zones_[number]; }
  std::vector<Zone>& zones() { return zones_; }
  const uint16_t* ZonelistOf(uint32_t node_index) const {
    return mapping_.zonelists + size_t{node_index} * mapping_.nr_zones;
  }
  int metadata_fd() const { return metadata_fd_; }
  const std::vector<int>& frame_fds() const { return frame_fds_; }
  char* frames() const { return frames_; }  // nullptr: not mapped
  uint64_t frames_bytes() const {
    return uint64_t{mapping_.nr_pages} * kPageSizeBytes;
  }

  bool read_only() const { return access_ == Access::kRead; }
  // What the header said when it was mapped.
  const std::string& name() const { return name_; }

  // The default when the word in the segment is none that could be set.
  TunableValue Tunable(TunableId id) const;
  double RealTunable(TunableId id) const;
  int64_t IntegerTunable(TunableId id) const;  // auto: -1

  // The next section of a zone comes into being: its frames are reserved
  // (populate = reserve), then the zone gets it. Recalculates as the policy
  // says. Any process may call it. Sections that others are populating come
  // last: then this thread does the same work, as they may be slow or dead.
  // Takes: the zone lock briefly, then the tuning lock; never both.
  // Returns: false when the zone has no section left to initialise.
  // Errors: kResourceExhausted when the host has no memory for the frames,
  // kUnavailable when the holder of the zone lock is stopped.
  absl::StatusOr<bool> InitialiseNextSection(uint32_t zone, ThreadOwner owner);
  bool Initialised() const {
    return SectionsInitialised() >= mapping_.nr_sections;
  }
  uint32_t SectionsInitialised() const;
  uint64_t ManagedPages() const;

 private:
  Segment() = default;
  absl::Status Map(int metadata_fd, uint64_t bytes);
  absl::Status MapFrames();
  static absl::StatusOr<std::unique_ptr<Segment>> AttachNew(
      int metadata_fd, std::vector<int> frame_fds, const SegmentConfig& config);
  absl::Status ReserveFrames(uint32_t section);
  // REQUIRES: the section is offline no more; others may be at it as well.
  absl::Status InitialiseSection(uint32_t section, ThreadOwner owner);
  absl::Status Validate(uint64_t file_bytes);
  absl::Status MapMetadata(int metadata_fd);
  // Copies what is constant about zones, and checks it.
  absl::Status LoadZones();

  SegmentHeader* header_ = nullptr;
  NodeShared* nodes_ = nullptr;
  const uint32_t* distances_ = nullptr;
  Mapping mapping_;
  std::vector<ZoneInfo> zone_info_;
  std::vector<uint16_t> zone_of_section_;
  std::vector<Zone> zones_;
  int metadata_fd_ = -1;
  std::vector<int> frame_fds_;
  char* frames_ = nullptr;
  uint64_t reserved_bytes_ = 0;
  std::string name_;
  uint64_t metadata_bytes_ = 0;
  Access access_ = Access::kWrite;
  PopulateMode populate_ = PopulateMode::kLazy;
  void* reservation_ = nullptr;
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_SEGMENT_H_
