// SPDX-License-Identifier: Apache-2.0
// The shapes of load: what one worker thread does from start to stop.
#ifndef MEMTUNED_CLIENT_LOAD_SHAPES_H_
#define MEMTUNED_CLIENT_LOAD_SHAPES_H_

#include <string>

#include "client/attach/include/memtuned/pool.h"
#include "client/load/board.h"
#include "client/load/load_config.h"

namespace memtuned::load {

struct Worker {
  const LoadConfig& config;
  Pool& pool;
  const std::atomic<Phase>& phase;
  WorkerCounts& counts;
  uint32_t number;  // in the whole run
  Ring* ring;       // producer-consumer only
  bool produces;    // which end of the ring

  bool running() const {
    return phase.load(std::memory_order_relaxed) == Phase::kRunning;
  }
};

// Works until the phase is past kRunning, then frees all it holds.
// Returns: "", or what the pool did wrong: a free refused, a page that
// another wrote to.
std::string Work(Worker& worker);

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_SHAPES_H_
