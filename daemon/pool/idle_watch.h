// SPDX-License-Identifier: Apache-2.0
// The pool's clock: once a second, pagesets that are not used give back what
// they keep (core/idle_pagesets.h). Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_IDLE_WATCH_H_
#define MEMTUNED_DAEMON_POOL_IDLE_WATCH_H_

#include <thread>

#include "core/base/mutex.h"
#include "core/segment.h"

namespace memtuned {

class IdleWatch {
 public:
  // REQUIRES: `segment` outlives this.
  explicit IdleWatch(Segment* segment);
  // Blocks: until the tick under way is done.
  ~IdleWatch();

 private:
  void Run();
  // Waits for the next tick. Returns: false when stopping.
  bool Wait();

  Segment* const segment_;
  Mutex mutex_;
  CondVar stopping_changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_IDLE_WATCH_H_
