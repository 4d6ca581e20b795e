// SPDX-License-Identifier: Apache-2.0
// Giving back what a process that is gone for good still held. Floor 2.
#ifndef MEMTUNED_CORE_REAP_H_
#define MEMTUNED_CORE_REAP_H_

#include "core/segment.h"

namespace memtuned {

struct ReapResult {
  uint64_t blocks = 0;
  uint64_t pages = 0;
};

// Frees every block allocated to, or offered by, `owner`, then its slot.
// Walks only sections the process ever took a page from, at most 64 blocks
// per zone-lock hold.
// REQUIRES: the whole process ended: its frames are in nobody's hands.
// Takes: zone locks.
ReapResult ReapProcess(Segment& segment, ProcessOwner owner,
                       ThreadOwner reaper);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_REAP_H_
