// SPDX-License-Identifier: Apache-2.0
// What a worker does: one slice after another, each in a shape drawn at
// random, until it is asked to end or killed. At the end of a slice it has
// given everything back.
#ifndef MEMTUNED_TESTS_TORTURE_SLICES_H_
#define MEMTUNED_TESTS_TORTURE_SLICES_H_

#include <cstdint>

#include "client/load/random.h"
#include "tests/torture/worker_process.h"

namespace memtuned::torture {

using load::Random;

// Draws a shape, 1 to 40 ms and a share of the pool, and works.
void RunSlice(WorkerProcess& process, Random& random);

// The shapes. `max_pages`: what may be held at a time.
//
// One of memtune-load's, whatever it is, in an order and a length drawn.
void RunLoadSlice(WorkerProcess& process, Slice& slice, Random& random,
                  uint64_t max_pages);
// Blocks of all orders come and go in no order; labels and memory policies.
void RunMixedSlice(WorkerProcess& process, Slice& slice, Random& random,
                   uint64_t max_pages);
// Many blocks in one call.
void RunBulkSlice(WorkerProcess& process, Slice& slice, Random& random,
                  uint64_t max_pages);
// Blocks pass from worker to worker, see exchange.cc.
void RunExchangeSlice(WorkerProcess& process, Slice& slice, Random& random,
                      uint64_t max_pages);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_SLICES_H_
