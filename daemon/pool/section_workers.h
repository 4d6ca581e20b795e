// SPDX-License-Identifier: Apache-2.0
// Deferred initialisation: one thread a node brings its sections into being,
// at init.sections_per_second, and ends with the last one. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_SECTION_WORKERS_H_
#define MEMTUNED_DAEMON_POOL_SECTION_WORKERS_H_

#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/segment.h"

namespace memtuned {

class SectionWorkers {
 public:
  // REQUIRES: `segment` outlives this.
  explicit SectionWorkers(Segment* segment);
  // Blocks: until the section under way is done.
  ~SectionWorkers();

 private:
  void Run(uint32_t zone);
  // Waits for the next section's turn. Returns: false when stopping.
  bool Wait();

  Segment* const segment_;
  Mutex mutex_;
  CondVar stopping_changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_SECTION_WORKERS_H_
