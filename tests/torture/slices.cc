// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/slices.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/env.h"
#include "tests/torture/actor.h"
#include "tests/torture/durations.h"

namespace memtuned::torture {
namespace {

struct Block {
  void* memory;
  int order;
};

// Small orders mostly; huge ones, and the largest, now and then.
int DrawOrder(Random& random) {
  constexpr std::array<int, 16> kOrders = {0, 0, 0, 0, 0, 0, 1, 1,
                                           1, 2, 2, 3, 3, 3, 9, 10};
  return kOrders[random.Between(0, kOrders.size() - 1)];
}

// In no order.
void FreeAll(Actor& actor, std::vector<Block>& blocks, Random& random) {
  while (!blocks.empty()) {
    const uint32_t last = static_cast<uint32_t>(blocks.size()) - 1;
    std::swap(blocks[random.Between(0, last)], blocks[last]);
    actor.Free(blocks[last].memory, blocks[last].order);
    blocks.pop_back();
  }
}

}  // namespace

void RunMixedSlice(WorkerProcess& process, Slice& slice, Random& random,
                   uint64_t max_pages) {
  Actor actor(process, 0, slice);
  std::vector<Block> blocks;
  uint64_t pages = 0;
  // Of nine steps; those above half of them fill the pool.
  const uint32_t allocations = random.Between(4, 8);
  while (slice.running()) {
    const int order = DrawOrder(random);
    const uint64_t size = uint64_t{1} << order;
    if (pages + size <= max_pages && random.Between(0, 8) < allocations) {
      void* memory = actor.Allocate(order);
      if (memory == nullptr) continue;
      blocks.push_back({memory, order});
      pages += size;
      const uint32_t extra = random.Between(0, 255);
      if (extra == 0) actor.SetLabel(memory, order, 7);
      if (extra == 1) actor.SetMemoryPolicy(random.Between(0, 1) == 0);
    } else if (!blocks.empty()) {
      const uint32_t last = static_cast<uint32_t>(blocks.size()) - 1;
      std::swap(blocks[random.Between(0, last)], blocks[last]);
      actor.Free(blocks[last].memory, blocks[last].order);
      pages -= uint64_t{1} << blocks[last].order;
      blocks.pop_back();
    } else {
      actor.LookAtTheClock(env::NowNs());
    }
  }
  FreeAll(actor, blocks, random);
}

void RunBulkSlice(WorkerProcess& process, Slice& slice, Random& random,
                  uint64_t max_pages) {
  Actor actor(process, 0, slice);
  std::vector<void*> blocks;
  while (slice.running()) {
    const int order = std::min(DrawOrder(random), 3);
    const uint64_t most = std::clamp<uint64_t>(max_pages >> order, 1, 512);
    blocks.resize(random.Between(1, static_cast<uint32_t>(most)));
    blocks.resize(actor.AllocateBulk(order, blocks));
    actor.FreeBulk(order, blocks);
  }
}

void RunSlice(WorkerProcess& process, Random& random) {
  Slice slice(env::NowNs() + random.Between(1, 40) * kMillisecond);
  // Whole pages take a hundred times as long as the pool does: mostly a line.
  slice.whole_stamps = random.Between(0, 3) == 0;
  // All workers together want less than the pool, or more, as it comes.
  const uint64_t share = process.pool_pages() / process.options.workers;
  const uint64_t max_pages =
      std::max<uint64_t>(share * 8 >> random.Between(0, 8), uint64_t{1} << 11);
  constexpr std::array kShapes = {RunLoadSlice, RunLoadSlice, RunMixedSlice,
                                  RunBulkSlice, RunExchangeSlice};
  kShapes[random.Between(0, kShapes.size() - 1)](process, slice, random,
                                                 max_pages);
}

}  // namespace memtuned::torture
