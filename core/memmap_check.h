// SPDX-License-Identifier: Apache-2.0
// Whether a memmap is what it always has to be, a partition. A daemon that
// takes a pool over looks, since any process could have written there. Floor 2.
#ifndef MEMTUNED_CORE_MEMMAP_CHECK_H_
#define MEMTUNED_CORE_MEMMAP_CHECK_H_

#include "absl/status/status.h"
#include "core/segment.h"

namespace memtuned {

// The heads of every section tile it, each in a state a block can be in.
// Processes may use the pool meanwhile: an area that looks wrong is looked at
// again under its zone's lock. One whose lock is not to be had is believed.
// Takes: zone locks, only for areas that look wrong.
// Errors: kDataLoss naming the page.
// Cost: reads 16 bytes a block of carved sections.
absl::Status CheckMemmap(Segment& segment, ThreadContext& thread);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MEMMAP_CHECK_H_
