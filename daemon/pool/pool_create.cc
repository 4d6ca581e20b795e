// SPDX-License-Identifier: Apache-2.0
// The life of a PoolSubject: made or taken over, and ended or handed on.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/slot_table.h"
#include "daemon/keeper/pool_claim.h"
#include "daemon/log.h"
#include "daemon/pool/frame_binding.h"
#include "daemon/pool/pool_subject.h"
#include "daemon/pool/pool_takeover.h"

namespace memtuned {
namespace {

uint64_t LlcPagesPerCpu() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (bytes <= 0 || cpus <= 0) return 0;
  return static_cast<uint64_t>(bytes) / kPageSizeBytes /
         static_cast<uint64_t>(cpus);
}

// Sizes of the nodes' zones. A total is spread over the nodes with memory in
// whole 4 MiB blocks; the first ones take the rest.
absl::StatusOr<std::vector<SegmentNode>> SizeNodes(const PoolConfig& config,
                                                   const Topology& topology) {
  constexpr uint64_t kUnit = kPageSizeBytes << kMaxOrder;
  uint64_t with_memory = 0;
  for (const TopologyNode& node : topology.nodes) {
    with_memory += node.memory_bytes > 0 ? 1 : 0;
  }
  if (with_memory == 0) {
    return absl::InvalidArgumentError(
        "no node of the topology has memory for a pool");
  }
  const uint64_t units = config.bytes / kUnit;
  std::vector<SegmentNode> nodes;
  uint64_t index = 0;
  for (const TopologyNode& node : topology.nodes) {
    SegmentNode sized;
    sized.os_index = node.os_index;
    if (node.memory_bytes > 0) {
      const uint64_t share =
          config.bytes_per_node
              ? units
              : units / with_memory + (index < units % with_memory ? 1 : 0);
      sized.pages = share << kMaxOrder;
      ++index;
    }
    nodes.push_back(sized);
  }
  if (units == 0 || (!config.bytes_per_node && units < with_memory)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pool ", config.name, ": size ", config.bytes,
                     " bytes is too small; ", "allowed from ", kUnit,
                     " bytes for each of ", with_memory, " nodes with memory"));
  }
  return nodes;
}

absl::StatusOr<SegmentConfig> SegmentConfigOf(const PoolConfig& config,
                                              const Topology& topology) {
  SegmentConfig segment;
  segment.name = config.name;
  segment.topology = topology;
  auto nodes = SizeNodes(config, topology);
  if (!nodes.ok()) return nodes.status();
  segment.nodes = *std::move(nodes);
  segment.populate =
      config.populate == "lazy" ? PopulateMode::kLazy : PopulateMode::kReserve;
  segment.llc_pages_per_cpu = LlcPagesPerCpu();
  segment.tunables = DefaultTunables();
  for (const TunableAssignment& assignment : config.tunables) {
    const TunableDef* def = FindTunable(assignment.tunable);
    if (def == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no tunable \"", assignment.tunable, "\""));
    }
    auto value = CheckTunable(*def, assignment.value);
    if (!value.ok()) return value.status();
    segment.tunables[static_cast<size_t>(def->id)] = *std::move(value);
  }
  return segment;
}

absl::StatusOr<std::unique_ptr<Segment>> MakePool(const SegmentConfig& wanted,
                                                  const PoolConfig& config) {
  auto segment = Segment::Create(wanted);
  if (!segment.ok()) return segment.status();
  SegmentHeader& header = (*segment)->header();
  for (const TunableAssignment& assignment : config.tunables) {
    const auto id = static_cast<size_t>(FindTunable(assignment.tunable)->id);
    Store(header.tunable_origins[id],
          static_cast<uint32_t>(TunableOrigin::kConfig));
  }
  if (wanted.topology.source == TopologySource::kLive) BindFrames(**segment);
  return segment;
}

size_t AttachedProcesses(const Segment& segment) {
  const Mapping& m = segment.mapping();
  size_t attached = 0;
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    attached += Load(m.processes[i].state) ==
                        static_cast<uint32_t>(SlotState::kAttached)
                    ? 1
                    : 0;
  }
  return attached;
}

}  // namespace

PoolSubject::PoolSubject(const PoolConfig& config, const Topology& topology,
                         FdStore* store)
    : pool_(config.name),
      name_(absl::StrCat("pools/", config.name)),
      topology_(topology),
      store_(store) {}

PoolSubject::~PoolSubject() {
  if (attach_ != nullptr) attach_->Stop();
  if (reaper_ != nullptr) reaper_->Stop();
  cpus_.reset();
  workers_.reset();
  idle_.reset();
  if (segment_ != nullptr) HandOn();
}

void PoolSubject::HandOn() {
  const size_t attached = AttachedProcesses(*segment_);
  if (attached > 0) {
    store_->ReleasePool(pool_);
  } else {
    store_->ForgetPool(pool_);
  }
  LogEvent(LogLevel::kInfo, attached > 0 ? "pool-handed-on" : "pool-ended",
           {{"pool", pool_},
            {"processes", absl::StrCat(attached)},
            {"observers", absl::StrCat(attach_ ? attach_->observers() : 0)}});
}

absl::StatusOr<std::unique_ptr<PoolSubject>> PoolSubject::Create(
    const PoolConfig& config, const Topology& topology, FdStore* store) {
  auto wanted = SegmentConfigOf(config, topology);
  if (!wanted.ok()) return wanted.status();
  TakenPool taken = TakeOverPool(*wanted, *store);
  if (taken.segment == nullptr) {
    auto made = MakePool(*wanted, config);
    if (!made.ok()) return made.status();
    taken.segment = *std::move(made);
  }
  std::unique_ptr<PoolSubject> pool(new PoolSubject(config, topology, store));
  pool->segment_ = std::move(taken.segment);
  pool->StoreFiles(taken);
  if (absl::Status s = pool->Start(config, std::move(taken)); !s.ok()) return s;
  return pool;
}

void PoolSubject::StoreFiles(const TakenPool& taken) {
  std::vector<int> files = {segment_->metadata_fd()};
  files.insert(files.end(), segment_->frame_fds().begin(),
               segment_->frame_fds().end());
  store_->StorePool(pool_, files);
  for (const auto* processes : {&taken.attached, &taken.gone}) {
    for (const ProcessWatch& process : *processes) {
      if (process.pidfd.get() < 0) continue;
      store_->StoreClient(pool_, process.owner, process.connection.get(),
                          process.pidfd.get());
    }
  }
  ClaimPool(segment_->metadata_fd());
}

absl::Status PoolSubject::Start(const PoolConfig& config, TakenPool taken) {
  Segment* const segment = segment_.get();
  BecomeDaemon(*segment);
  {
    MutexLock lock(mutex_);
    TakeThreadSlot(*segment, kDaemonProcess, &thread_);
  }
  {
    MutexLock lock(watch_mutex_);
    processes_ = std::make_unique<ProcessMonitor>(segment, config.proc_root,
                                                  config.sys_root);
  }
  reaper_ = std::make_unique<Reaper>(segment, store_, pool_);
  for (ProcessWatch& process : taken.gone) reaper_->Reap(std::move(process));
  if (topology_.source == TopologySource::kLive) {
    cpus_ = std::make_unique<CpuWatch>(
        segment, config.sys_root + "/devices/system/cpu/online");
  }
  auto attach = AttachServer::Start(segment, store_, reaper_.get(),
                                    {.path = config.socket_path,
                                     .mode = config.socket_mode,
                                     .pool = pool_,
                                     .users = config.users,
                                     .attached = std::move(taken.attached)});
  if (!attach.ok()) return attach.status();
  attach_ = *std::move(attach);
  workers_ = std::make_unique<SectionWorkers>(segment);
  idle_ = std::make_unique<IdleWatch>(segment);
  return absl::OkStatus();
}

}  // namespace memtuned
