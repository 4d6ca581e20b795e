// SPDX-License-Identifier: Apache-2.0
// memtune-load's shapes, as they are: the linker sends their calls to Actor.
#include <sys/types.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <thread>

#include "client/load/ring.h"
#include "client/load/shapes.h"
#include "tests/torture/actor.h"
#include "tests/torture/slices.h"

namespace memtuned::torture {
namespace {

using load::LoadConfig;
using load::Ring;
using load::Shape;

struct FreeRing {
  void operator()(Ring* ring) const { std::free(ring); }
};
using RingMemory = std::unique_ptr<Ring, FreeRing>;

RingMemory MakeRing(uint32_t entries) {
  const size_t bytes = Ring::BytesFor(entries);
  void* memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) std::abort();
  Ring* ring = new (memory) Ring;
  ring->Init(entries);
  return RingMemory(ring);
}

// What the shape may hold at most is n blocks, or 4 n for kStream.
LoadConfig DrawConfig(Random& random, uint64_t max_pages) {
  LoadConfig config;
  config.shape =
      static_cast<Shape>(random.Between(0, load::kShapes.size() - 1));
  config.order = static_cast<int>(random.Between(0, 3));
  if (random.Between(0, 15) == 0) config.order = random.Between(0, 1) + 9;
  config.seed = random.Next();
  const load::ShapeDef& shape = load::GetShape(config.shape);
  const uint64_t blocks =
      (config.shape == Shape::kStream ? max_pages / 4 : max_pages) >>
      config.order;
  const uint32_t least = std::max(shape.n_min, 1u);
  const uint64_t most =
      std::clamp<uint64_t>(blocks, least, std::max(shape.n_max, 1u));
  config.n = random.Between(least, static_cast<uint32_t>(most));
  if (config.shape == Shape::kProducerConsumer) {
    config.n = std::bit_floor(std::min(config.n, 256u));
  }
  return config;
}

void Work(WorkerProcess& process, Slice& slice, const LoadConfig& config,
          uint32_t thread, Ring* ring) {
  Actor actor(process, thread, slice);
  load::WorkerCounts counts{};  // the board's lines count
  load::Worker worker{config, process.pool, slice.phase, counts,
                      thread, ring,         thread == 0};
  const std::string problem = load::Work(worker);
  if (!problem.empty()) process.Fail(Fault::kRefused, problem);
}

}  // namespace

void RunLoadSlice(WorkerProcess& process, Slice& slice, Random& random,
                  uint64_t max_pages) {
  const LoadConfig config = DrawConfig(random, max_pages);
  if (config.shape != Shape::kProducerConsumer) {
    Work(process, slice, config, 0, nullptr);
    return;
  }
  const RingMemory ring = MakeRing(config.n);
  std::thread consumer([&] { Work(process, slice, config, 1, ring.get()); });
  Work(process, slice, config, 0, ring.get());
  consumer.join();
}

}  // namespace memtuned::torture
