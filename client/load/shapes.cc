// SPDX-License-Identifier: Apache-2.0
#include "client/load/shapes.h"

#include <sched.h>

#include <vector>

#include "client/load/random.h"

namespace memtuned::load {
namespace {

constexpr size_t kPageBytes = 4096;

void* Allocate(Worker& w) {
  void* block = w.pool.Allocate(w.config.order);
  if (block == nullptr) {
    w.counts.Failed();
  } else {
    w.counts.Allocated();
  }
  return block;
}

// Returns: false when the pool refused it.
bool Free(Worker& w, void* block, std::string* error) {
  const memtuned_status status = w.pool.Free(block, w.config.order);
  if (status != MEMTUNED_OK) {
    *error = "free of this process's block at offset " +
             std::to_string(w.pool.ToOffset(block)) + ": " +
             memtuned_strerror(status);
    return false;
  }
  w.counts.Freed();
  return true;
}

std::string Lifo(Worker& w) {
  std::string error;
  while (w.running()) {
    void* block = Allocate(w);
    if (block != nullptr && !Free(w, block, &error)) return error;
  }
  return error;
}

std::string Burst(Worker& w) {
  std::string error;
  std::vector<void*> blocks;
  blocks.reserve(w.config.n);
  while (w.running()) {
    blocks.clear();
    for (uint32_t i = 0; i < w.config.n && w.running(); ++i) {
      void* block = Allocate(w);
      if (block == nullptr) break;
      blocks.push_back(block);
    }
    for (void* block : blocks) {
      if (!Free(w, block, &error)) return error;
    }
  }
  return error;
}

// Packets come in runs and leave in runs of other lengths, oldest first.
std::string Stream(Worker& w) {
  std::string error;
  Random random(w.config.seed, w.number);
  const size_t capacity = size_t{w.config.n} * 4;
  std::vector<void*> queue(capacity);
  size_t head = 0, count = 0;
  const auto free_oldest = [&](size_t blocks) {
    for (; blocks > 0 && count > 0; --blocks, --count) {
      if (!Free(w, queue[head], &error)) return false;
      head = (head + 1) % capacity;
    }
    return true;
  };
  while (w.running()) {
    for (uint32_t run = random.Between(1, w.config.n);
         run > 0 && count < capacity; --run) {
      void* block = Allocate(w);
      if (block == nullptr) break;
      queue[(head + count++) % capacity] = block;
    }
    if (!free_oldest(random.Between(1, w.config.n))) return error;
  }
  free_oldest(count);
  return error;
}

std::string Produce(Worker& w) {
  const int order = w.config.order;
  const bool offers = w.config.between_processes();
  std::string error;
  while (w.running()) {
    void* block = Allocate(w);
    if (block == nullptr) {
      sched_yield();
      continue;
    }
    const uint64_t offset = w.pool.ToOffset(block);
    if (offers && w.pool.Offer(offset, order) != MEMTUNED_OK) {
      error = "offer of this process's block at offset " +
              std::to_string(offset) + " was refused";
      break;
    }
    bool pushed = w.ring->Push(offset);
    for (; !pushed && w.running(); pushed = w.ring->Push(offset)) {
      sched_yield();
    }
    if (!pushed && !Free(w, block, &error)) break;
  }
  w.ring->Close();
  return error;
}

std::string Consume(Worker& w) {
  const int order = w.config.order;
  const bool adopts = w.config.between_processes();
  for (;;) {
    // Looked at before the ring: what was pushed before it closed is seen.
    const bool last = w.ring->closed() || w.phase.load() == Phase::kFinished;
    uint64_t offset;
    if (!w.ring->Pop(&offset)) {
      if (last) return "";
      sched_yield();
      continue;
    }
    const memtuned_status status =
        adopts ? w.pool.FreeAdopted(offset, order)
               : w.pool.Free(w.pool.FromOffset(offset), order);
    if (status != MEMTUNED_OK) {
      return "free of the block at offset " + std::to_string(offset) + ": " +
             memtuned_strerror(status);
    }
    w.counts.Freed();
  }
}

// Marks every page of a block as this worker's, or checks the marks.
class Stamp {
 public:
  Stamp(const Worker& worker)
      : pages_(size_t{1} << worker.config.order), owner_(worker.number) {}

  void Write(void* block, uint64_t round) const {
    for (size_t page = 0; page < pages_; ++page) {
      At(block, page)[0] = owner_;
      At(block, page)[1] = round + page;
    }
  }
  bool Holds(void* block, uint64_t round) const {
    for (size_t page = 0; page < pages_; ++page) {
      if (At(block, page)[0] != owner_ || At(block, page)[1] != round + page) {
        return false;
      }
    }
    return true;
  }

 private:
  static volatile uint64_t* At(void* block, size_t page) {
    return reinterpret_cast<volatile uint64_t*>(static_cast<char*>(block) +
                                                page * kPageBytes);
  }
  const size_t pages_;
  const uint64_t owner_;
};

std::string Fault(Worker& w) {
  std::string error;
  const Stamp stamp(w);
  std::vector<void*> blocks;
  blocks.reserve(w.config.n);
  for (uint64_t round = 0; w.running(); ++round) {
    blocks.clear();
    for (uint32_t i = 0; i < w.config.n && w.running(); ++i) {
      void* block = Allocate(w);
      if (block == nullptr) break;
      stamp.Write(block, round);
      blocks.push_back(block);
    }
    for (void* block : blocks) {
      if (!stamp.Holds(block, round)) {
        error = "the block at offset " +
                std::to_string(w.pool.ToOffset(block)) +
                " was written to by somebody else while this process had it";
        return error;
      }
      if (!Free(w, block, &error)) return error;
    }
  }
  return error;
}

}  // namespace

std::string Work(Worker& worker) {
  switch (worker.config.shape) {
    case Shape::kLifo:
      return Lifo(worker);
    case Shape::kBurst:
      return Burst(worker);
    case Shape::kStream:
      return Stream(worker);
    case Shape::kProducerConsumer:
      return worker.produces ? Produce(worker) : Consume(worker);
    case Shape::kFault:
      return Fault(worker);
  }
  return "";
}

}  // namespace memtuned::load
