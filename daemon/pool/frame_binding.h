// SPDX-License-Identifier: Apache-2.0
// Binding a pool's frames to the nodes they are for, on the live machine.
// Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_FRAME_BINDING_H_
#define MEMTUNED_DAEMON_POOL_FRAME_BINDING_H_

#include "core/segment.h"

namespace memtuned {

// Sets the memory policy of each zone's frames to its node. A node that does
// not accept it is logged; its frames then come from where the kernel likes.
void BindFrames(Segment& segment);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_FRAME_BINDING_H_
