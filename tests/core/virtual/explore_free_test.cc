// SPDX-License-Identifier: Apache-2.0
// Every schedule, within a bound, of two threads of a process that give the
// same block away: the one that took it may do so by a store, the other one
// swaps. Compiled a second time without the wait between the two, to show that
// this finds what happens then.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "tests/core/virtual/virtual_pool.h"

namespace memtuned {
namespace {

class ExploreFreeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  static void Expect(const char* what, const ExplorerOptions& bound,
                     const Exploration& found, uint64_t at_least) {
#ifdef MEMTUNED_NO_WAIT_FOR_STORES
    (void)bound, (void)at_least;
    ExpectFailure(what, found);
#else
    ExpectAllSound(what, bound, found, at_least);
#endif
  }
};

TEST_F(ExploreFreeTest, OneOfTwoFreesWins) {
  // `high` 0: straight on to the zone, where the block merges.
  for (uint32_t high : {4u, 0u}) {
    VirtualPool pool({.limits = SmallLimits(1, high)});
    const ExplorerOptions bound{.preemptions = 3};
    Pfn block;
    pool.On(0, [&] { block = pool.allocator().Allocate(0); });
    std::array<FreeResult, 2> freed;
    const auto body = [&](size_t i) {
      return [&, i] { freed[i] = pool.allocator().Free(block, 0); };
    };

    const Exploration found =
        pool.Explore(bound, {body(0), body(1)}, [&]() -> std::string {
          const auto wins =
              std::count(freed.begin(), freed.end(), FreeResult::kFreed);
          return wins == 1 ? "" : std::to_string(wins) + " frees won";
        });

    Expect("double free by two threads", bound, found, 2000);
  }
}

TEST_F(ExploreFreeTest, EachBlockOfABulkFreeIsFreedOnce) {
  VirtualPool pool({.limits = SmallLimits(1, 4)});
  const ExplorerOptions bound{.preemptions = 3};
  std::array<Pfn, 2> blocks;
  pool.On(0, [&] {
    for (Pfn& pfn : blocks) pfn = pool.allocator().Allocate(0);
  });
  size_t bulk = 0;
  FreeResult single = FreeResult::kFreed;

  const Exploration found = pool.Explore(
      bound,
      {[&] { bulk = pool.allocator().FreeBulk(0, blocks); },
       [&] { single = pool.allocator().Free(blocks[1], 0); }},
      [&]() -> std::string {
        const size_t wins = bulk + (single == FreeResult::kFreed ? 1 : 0);
        return wins == 2 ? "" : std::to_string(wins) + " frees won";
      });

  Expect("bulk free and free by two threads", bound, found, 5000);
}

TEST_F(ExploreFreeTest, AFreeOrAnAdoptionWins) {
  VirtualPool pool({.limits = SmallLimits(1, 4)});
  const ExplorerOptions bound{.preemptions = 4};
  Pfn block;
  pool.On(0, [&] { block = pool.allocator().Allocate(0); });
  FreeResult freed = FreeResult::kFreed, adopted = FreeResult::kFreed;

  const Exploration found =
      pool.Explore(bound,
                   {[&] { freed = pool.allocator().Free(block, 0); },
                    [&] {
                      pool.allocator().Offer(block, 0);
                      adopted = pool.allocator(1).Adopt(block, 0);
                    }},
                   [&]() -> std::string {
                     const bool both = freed == FreeResult::kFreed &&
                                       adopted == FreeResult::kFreed;
                     return both ? "freed, and another process has it" : "";
                   });

  Expect("free x offer and adopt", bound, found, 1000);
}

}  // namespace
}  // namespace memtuned
