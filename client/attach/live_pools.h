// SPDX-License-Identifier: Apache-2.0
// All pools this process is attached to, so that a forked child closes its
// copies of their connections: the daemon then learns at once when the parent
// ends. (The core itself lets go of slots and blocks, core/thread_context.h.)
#ifndef MEMTUNED_CLIENT_ATTACH_LIVE_POOLS_H_
#define MEMTUNED_CLIENT_ATTACH_LIVE_POOLS_H_

#include "client/attach/include/memtuned/memtuned.h"

namespace memtuned::attach {

// From now until RemoveLivePool a forked child closes its copy.
// Thread safety: any thread.
void AddLivePool(memtuned_pool* pool);
void RemoveLivePool(memtuned_pool* pool);

}  // namespace memtuned::attach

#endif  // MEMTUNED_CLIENT_ATTACH_LIVE_POOLS_H_
