// SPDX-License-Identifier: Apache-2.0
// Follows the live machine's CPUs as they come and go, so that a pool's
// limits fit the CPUs that are really there. One thread, one small file read
// a second, nothing in any request. Floor 2b.
#ifndef MEMTUNED_DAEMON_POOL_CPU_WATCH_H_
#define MEMTUNED_DAEMON_POOL_CPU_WATCH_H_

#include <chrono>
#include <string>
#include <thread>

#include "core/base/mutex.h"
#include "core/segment.h"

namespace memtuned {

class CpuWatch {
 public:
  // `online_file` is a kernel CPU list, /sys/devices/system/cpu/online. A
  // file that cannot be read or parsed changes nothing and is logged once.
  // REQUIRES: `segment` outlives this.
  CpuWatch(Segment* segment, std::string online_file,
           std::chrono::milliseconds interval = std::chrono::seconds(1));
  // Blocks: at most for one look.
  ~CpuWatch();

 private:
  void Run();
  void Look(ThreadContext& thread);

  Segment* const segment_;
  const std::string online_file_;
  const std::chrono::milliseconds interval_;
  bool complained_ = false;  // the thread's own
  Mutex mutex_;
  CondVar stopping_changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_POOL_CPU_WATCH_H_
