// SPDX-License-Identifier: Apache-2.0
// Gives back what processes held that left a pool, in a thread of its own: a
// large one delays nobody who attaches. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_REAPER_H_
#define MEMTUNED_DAEMON_POOL_REAPER_H_

#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/segment.h"
#include "daemon/keeper/fd_store.h"

namespace memtuned {

// Thread safety: any thread.
class Reaper {
 public:
  // `store` keeps what processes of pool `name` are watched by; it forgets a
  // process once its blocks are back.
  // REQUIRES: `segment` and `store` outlive this.
  Reaper(Segment* segment, FdStore* store, std::string name);
  ~Reaper();

  // Ends the thread; what is not finished is left to the next daemon. May be
  // called again.
  // Blocks: until the process under way is done.
  void Stop() EXCLUDES(mutex_);

  // REQUIRES: the process ended, or left the pool (ProcessLeft).
  void Reap(ProcessWatch process) EXCLUDES(mutex_);

 private:
  struct Job {
    ProcessWatch process;
    uint64_t pages = 0;  // given back in earlier attempts
  };

  void Run();
  // The next jobs; none when it is time to try earlier ones again, or to end.
  std::vector<Job> Wait() EXCLUDES(mutex_);
  bool Stopping() EXCLUDES(mutex_);
  // Returns: false when it has to be tried again.
  bool Finish(Job& job);

  Segment* const segment_;
  FdStore* const store_;
  const std::string name_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Job> jobs_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  // The rest belongs to the thread.
  ThreadContext thread_context_;
  std::vector<Job> again_;  // not finished
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_REAPER_H_
