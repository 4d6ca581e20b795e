// SPDX-License-Identifier: Apache-2.0
#include "client/attach/live_pools.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

#include "client/attach/pool_state.h"
#include "core/base/mutex.h"

namespace memtuned::attach {
namespace {

constinit Mutex g_mutex;

// Never destroyed: threads may use pools while the process exits.
std::vector<memtuned_pool*>& Pools() REQUIRES(g_mutex) {
  static auto* pools = new std::vector<memtuned_pool*>;
  return *pools;
}

void BeforeFork() NO_THREAD_SAFETY_ANALYSIS { g_mutex.Lock(); }

void InParent() NO_THREAD_SAFETY_ANALYSIS { g_mutex.Unlock(); }

void InChild() NO_THREAD_SAFETY_ANALYSIS {
  for (memtuned_pool* pool : Pools()) pool->connection.Reset();
  Pools().clear();
  g_mutex.Unlock();
}

}  // namespace

void AddLivePool(memtuned_pool* pool) {
  [[maybe_unused]] static const int once =
      pthread_atfork(BeforeFork, InParent, InChild);
  MutexLock lock(g_mutex);
  Pools().push_back(pool);
}

void RemoveLivePool(memtuned_pool* pool) {
  MutexLock lock(g_mutex);
  std::erase(Pools(), pool);
}

}  // namespace memtuned::attach
