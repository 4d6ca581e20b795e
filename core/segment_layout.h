// SPDX-License-Identifier: Apache-2.0
// Offsets of a segment's parts, a pure function of its sizes: the creator and
// every attaching process compute the same. Floor 2, private to segment.cc.
#ifndef MEMTUNED_CORE_SEGMENT_LAYOUT_H_
#define MEMTUNED_CORE_SEGMENT_LAYOUT_H_

#include <cstdint>

#include "core/segment.h"

namespace memtuned {

struct SegmentLayout {
  uint64_t nodes, distances, zonelists, zones, cpu_table, online_cpus;
  uint64_t processes, process_sections, threads, lives, sections, section_maps;
  uint64_t pagesets, chunks, free_areas, memmap, total_bytes;
};

// REQUIRES: the header's sizes are within CheckSizes().
SegmentLayout ComputeLayout(const SegmentHeader& header);

// kInvalidArgument naming the first size out of range.
absl::Status CheckSizes(const SegmentHeader& header);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_SEGMENT_LAYOUT_H_
