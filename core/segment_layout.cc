// SPDX-License-Identifier: Apache-2.0
#include "core/segment_layout.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

class Offsets {
 public:
  uint64_t Next(uint64_t bytes) {
    const uint64_t at = end_;
    end_ = (end_ + bytes + kPageSizeBytes - 1) & ~(kPageSizeBytes - 1);
    return at;
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_ = 0;
};

absl::Status InRange(const char* what, uint64_t value, uint64_t min,
                     uint64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "segment: ", what, " is ", value, "; allowed ", min, " to ", max));
}

// FNV-1a over numbers.
class Hash {
 public:
  Hash& Add(uint64_t value) {
    for (int i = 0; i < 8; ++i) {
      hash_ = (hash_ ^ (value >> (8 * i) & 255)) * 0x100000001b3ull;
    }
    return *this;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace

SegmentLayout ComputeLayout(const SegmentHeader& h) {
  Offsets at;
  at.Next(sizeof(SegmentHeader));
  SegmentLayout l;
  const uint64_t nodes = h.nr_nodes;
  l.nodes = at.Next(nodes * sizeof(NodeShared));
  l.distances = at.Next(nodes * nodes * sizeof(uint32_t));
  l.zonelists = at.Next(nodes * h.nr_zones * sizeof(uint16_t));
  l.zones = at.Next(h.nr_zones * sizeof(ZoneShared));
  l.cpu_table = at.Next((kMaxCpuNumber + 1) * sizeof(CpuEntry));
  l.online_cpus = at.Next((kMaxCpuNumber + 1) / 8);
  l.processes = at.Next(h.nr_processes * sizeof(ProcessSlot));
  const uint64_t section_words = (h.nr_sections + 63) / 64;
  l.process_sections = at.Next(h.nr_processes * section_words * 8);
  l.threads = at.Next(h.nr_threads * sizeof(ThreadSlot));
  l.lives = at.Next(h.nr_threads * sizeof(LifePage));
  l.sections = at.Next(h.nr_sections * sizeof(Section));
  l.section_maps = at.Next(h.section_map_words * 8);
  l.pagesets =
      at.Next(uint64_t{h.nr_zones} * h.nr_cpus * sizeof(PagesetShared));
  l.chunks = at.Next(uint64_t{h.nr_chunks} * sizeof(Chunk));
  l.free_areas = at.Next(h.nr_sections * sizeof(SectionFreeAreas));
  l.memmap = at.Next(uint64_t{h.nr_pages} * sizeof(Page));
  l.total_bytes = at.end();
  return l;
}

absl::Status CheckSizes(const SegmentHeader& h) {
  absl::Status status;
  status.Update(InRange("nr_nodes", h.nr_nodes, 1, kMaxNodes));
  status.Update(InRange("nr_zones", h.nr_zones, 1, 2 * kMaxNodes));
  status.Update(InRange("nr_cpus", h.nr_cpus, 1, kMaxCpuNumber + 1));
  status.Update(InRange("nr_sections", h.nr_sections, 1, kMaxSections - 1));
  status.Update(InRange("nr_pages", h.nr_pages, 1,
                        uint64_t{h.nr_sections} << kSectionShift));
  status.Update(InRange("nr_chunks", h.nr_chunks, 1, kMaxChunks));
  status.Update(InRange("nr_processes", h.nr_processes, 1, kMaxProcesses - 1));
  status.Update(InRange("nr_threads", h.nr_threads, 1, kMaxThreads - 1));
  status.Update(
      InRange("section_map_words", h.section_map_words, 1, uint64_t{1} << 32));
  return status;
}

uint64_t AbiHash() {
  Hash hash;
  hash.Add(sizeof(SegmentHeader))
      .Add(offsetof(SegmentHeader, tuning_lock))
      .Add(offsetof(SegmentHeader, change))
      .Add(offsetof(SegmentHeader, empty_chunks))
      .Add(offsetof(SegmentHeader, mems_allowed_retries))
      .Add(sizeof(NodeShared));
  hash.Add(sizeof(ZoneShared))
      .Add(offsetof(ZoneShared, control))
      .Add(offsetof(ZoneShared, lock))
      .Add(sizeof(ZoneIntent))
      .Add(sizeof(ChunkStack))
      .Add(offsetof(ZoneShared, free_blocks))
      .Add(offsetof(ZoneShared, depot))
      .Add(offsetof(ZoneShared, used_cpus));
  hash.Add(sizeof(PagesetShared))
      .Add(offsetof(PagesetShared, free_count))
      .Add(offsetof(PagesetShared, top))
      .Add(offsetof(PagesetShared, allocations))
      .Add(offsetof(PagesetShared, lists))
      .Add(offsetof(PagesetShared, numa_interleave));
  hash.Add(sizeof(Chunk)).Add(offsetof(Chunk, items)).Add(sizeof(Page));
  hash.Add(sizeof(ProcessSlot))
      .Add(offsetof(ProcessSlot, retired))
      .Add(offsetof(ProcessSlot, limit_override))
      .Add(offsetof(ProcessSlot, peak_pages))
      .Add(offsetof(ProcessSlot, limit_lock))
      .Add(offsetof(ProcessSlot, mems))
      .Add(sizeof(MemsAllowed))
      .Add(sizeof(MemsCopy));
  hash.Add(sizeof(ThreadSlot))
      .Add(offsetof(ThreadSlot, pending))
      .Add(offsetof(ThreadSlot, allowance))
      .Add(offsetof(ThreadSlot, counts))
      .Add(kMemsFlagBits);
  hash.Add(sizeof(Section)).Add(sizeof(SectionFreeAreas));
  hash.Add(sizeof(CpuEntry)).Add(kNumLists).Add(kChunkBlocks);
  hash.Add(kNumTunables).Add(kSectionShift).Add(kMaxOrder);
  return hash.value();
}

}  // namespace memtuned
