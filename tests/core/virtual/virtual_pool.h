// SPDX-License-Identifier: Apache-2.0
// A tiny pool that is put back to where it was before each schedule, and the
// frame of every exploring test: all schedules within the bound are tried,
// each leaves a sound pool behind, and how many there were is printed.
#ifndef MEMTUNED_TESTS_CORE_VIRTUAL_VIRTUAL_POOL_H_
#define MEMTUNED_TESTS_CORE_VIRTUAL_VIRTUAL_POOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/mm/pageset.h"
#include "tests/core/virtual/explorer.h"
#include "tests/core/virtual/write_set.h"
#include "tests/support/test_segment.h"

namespace memtuned {

// Metadata as it was, put back a page at a time where it differs; and what the
// first `fibers` fibers remember. One of a segment at a time.
class PoolSnapshot {
 public:
  PoolSnapshot(Segment& segment, uint32_t fibers);
  void PutBack();
  // FNV-1a over the metadata as it is now.
  uint64_t DigestNow() const;

  // A later state, as the pages written until then.
  struct Moment {
    std::vector<char> bytes;
    std::vector<LastUsed> last_used;
  };
  Moment Now() const;
  void PutBack(const Moment& moment);

 private:
  char* base_;
  std::vector<char> bytes_;
  std::vector<LastUsed> last_used_;
  WriteSet written_;
};

// Small limits, so that a refill or flush is a few blocks.
PagesetLimits SmallLimits(uint32_t batch, uint32_t high);

struct VirtualPoolOptions {
  uint32_t fibers = 2;
  const char* topology = "1 node, 2 cpus";
  std::vector<int> node_indexes = {0};
  std::vector<uint64_t> node_pages = {256};
  PagesetLimits limits = SmallLimits(1, 2);
  uint64_t depot_max_pages = 0;
};

// Two allocators (processes) of one pool; every fiber below `fibers` has its
// thread slot in both and has used the first one last, so that schedules are
// about allocation, not attaching.
class VirtualPool {
 public:
  explicit VirtualPool(const VirtualPoolOptions& options = {});

  Segment& segment() { return pool_.segment(); }
  TestSegment& pool() { return pool_; }
  PoolSnapshot TakeSnapshot() {
    return PoolSnapshot(segment(), static_cast<uint32_t>(threads_.size()));
  }
  Zone& zone(uint32_t number = 0) { return pool_.zone(number); }
  Allocator& allocator(int process = 0) {
    return process == 0 ? *first_ : *second_;
  }
  PagesetShared& PagesetOf(uint32_t cpu, uint32_t zone = 0) {
    return *pool_.mapping().PagesetOf(zone, cpu);
  }
  // Of the running fiber.
  ThreadContext& Thread() { return threads_[env::CurrentFiber()]; }
  uint64_t DrainPagesetOf(uint32_t cpu, uint32_t zone = 0);
  uint64_t DrainDepot(uint32_t zone = 0);

  // Runs a body as fiber `cpu`, alone.
  void On(uint32_t cpu, std::function<void()> body);

  // "" when the pool is sound, nobody holds a lock, and each process's
  // counters agree with the blocks that name it.
  std::string Problem();

  // Explores from the pool's present state. `check` (may be empty) comes
  // before Problem().
  Exploration Explore(const ExplorerOptions& options,
                      std::vector<std::function<void()>> bodies,
                      std::function<std::string()> check = {},
                      std::function<void()> prepare = {});

 private:
  TestSegment pool_;
  std::unique_ptr<Allocator> first_, second_;
  std::vector<ThreadContext> threads_;
};

// Prints the figures; expects no failure, a complete search, and at least
// `at_least` schedules.
void ExpectAllSound(const char* what, const ExplorerOptions& options,
                    const Exploration& found, uint64_t at_least);
// For builds in which a part of the core is left out: prints the schedule.
void ExpectFailure(const char* what, const Exploration& found);

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_CORE_VIRTUAL_VIRTUAL_POOL_H_
