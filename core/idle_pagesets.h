// SPDX-License-Identifier: Apache-2.0
// Takes back what CPUs keep and do not use, without their help: somebody calls
// Tick() once a second, as the kernel's statistics clock does for each CPU.
// There an idle CPU keeps what it has; here it does not. Floor 2.
//
//   each tick     pagesets whose high floats: Pageset::Decay
//   after kQuietTicks ticks without an operation: pagesets of zones of other
//                 nodes than their CPU's are emptied, as are those of offline
//                 CPUs. Nobody near would find their pages, and the zone would
//                 look short of memory.
//
// The kernel takes a batch at a time from the latter, and starts to count anew
// after each; here all of it goes, at most 64 blocks under a hold.
#ifndef MEMTUNED_CORE_IDLE_PAGESETS_H_
#define MEMTUNED_CORE_IDLE_PAGESETS_H_

#include <cstdint>
#include <vector>

#include "core/segment.h"

namespace memtuned {

class IdlePagesets {
 public:
  static constexpr uint32_t kQuietTicks = 3;  // the kernel's expire

  struct Taken {
    uint64_t decayed_pages = 0;
    uint64_t drained_pages = 0;
  };

  // REQUIRES: `segment` outlives this.
  explicit IdlePagesets(Segment* segment);

  // Thread safety: one thread at a time.
  // Takes: as Pageset::Drain. Cost: some loads a pageset ever used; a barrier
  // on all CPUs for each from which something is taken.
  Taken Tick(ThreadContext& thread);

 private:
  struct Seen {
    uint64_t operations = 0;
    uint32_t quiet_ticks = 0;
  };

  // Whether the pages of that zone are far from those who use the CPU.
  bool IsAway(uint32_t zone, uint32_t cpu) const;

  Segment* const segment_;
  std::vector<Seen> seen_;            // as Mapping::pagesets
  std::vector<uint32_t> cpus_nodes_;  // os index of the home node
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_IDLE_PAGESETS_H_
