// SPDX-License-Identifier: Apache-2.0
// Every schedule, within a bound, of two threads of a process that want more
// than it may hold: one has the allowance, the other one takes it away.
// Compiled a second time without the second look at the allowance, to show
// that this finds what happens then.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/process_limit.h"
#include "core/slot_table.h"
#include "tests/core/virtual/virtual_pool.h"

namespace memtuned {
namespace {

class ExploreLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  static void Limit(VirtualPool& pool, uint64_t pages) {
    const ProcessOwner owner = pool.allocator().owner();
    SetOwnLimit(pool.segment(), *FindProcessSlot(pool.segment(), owner), owner,
                pages);
  }
  static void Expect(const char* what, const ExplorerOptions& bound,
                     const Exploration& found, uint64_t at_least) {
#ifdef MEMTUNED_NO_SECOND_LOOK
    (void)bound, (void)at_least;
    ExpectFailure(what, found);
#else
    ExpectAllSound(what, bound, found, at_least);
#endif
  }
};

TEST_F(ExploreLimitTest, TwoThreadsNeverHoldMoreTogether) {
  VirtualPool pool({.limits = SmallLimits(1, 4)});
  const ExplorerOptions bound{.preemptions = 2};
  Limit(pool, 2);
  pool.On(0, [&] {
    Allocator& ours = pool.allocator();
    const std::array blocks = {ours.Allocate(0), ours.Allocate(0)};
    for (Pfn pfn : blocks) CHECK(ours.Free(pfn, 0) == FreeResult::kFreed);
  });
  std::array<int, 2> got;
  const auto body = [&](size_t i) {
    return [&, i] {
      got[i] = 0;
      for (int n = 0; n < 2; ++n) {
        got[i] += pool.allocator().Allocate(0).value != kNil ? 1 : 0;
      }
    };
  };

  const Exploration found =
      pool.Explore(bound, {body(0), body(1)}, [&]() -> std::string {
        const int all = got[0] + got[1];
        return all >= 1 && all <= 2 ? "" : std::to_string(all) + " pages held";
      });

  Expect("two threads, a limit of two pages", bound, found, 1000);
}

#ifndef MEMTUNED_NO_SECOND_LOOK
// It gives what it counted to its process under the lock that the others ask
// for; they must not take it for dead meanwhile.
TEST_F(ExploreLimitTest, AThreadThatEndsLetsTheOthersHoldNoMore) {
  VirtualPool pool(
      {.fibers = 3, .topology = "1 node, 3 cpus", .limits = SmallLimits(1, 4)});
  const ExplorerOptions bound{.preemptions = 2};
  Limit(pool, 1);
  std::array<bool, 2> got;
  const auto takes = [&](size_t i) {
    return [&, i] {
      got[i] = false;
      got[i] = pool.allocator().Allocate(0).value != kNil;
    };
  };
  const auto ends = [&] {
    ThreadContext thread;
    TakeThreadSlot(pool.segment(), pool.allocator().owner(), &thread);
    ReleaseThreadSlot(pool.segment(), thread);
  };

  const Exploration found =
      pool.Explore(bound, {ends, takes(0), takes(1)}, [&]() -> std::string {
        return got[0] && got[1] ? "two pages held" : "";
      });

  ExpectAllSound("a thread ends, two others allocate", bound, found, 1000);
}

// What is begun when the limit is set may still succeed, once.
TEST_F(ExploreLimitTest, ALimitSetMeanwhileStopsTheNextAllocation) {
  VirtualPool pool({.limits = SmallLimits(1, 4)});
  const ExplorerOptions bound{.preemptions = 2};
  Limit(pool, 4);
  int got = 0, before = 0;

  const Exploration found = pool.Explore(
      bound,
      {[&] {
         got = 0;
         for (int n = 0; n < 3; ++n) {
           got += pool.allocator().Allocate(0).value != kNil ? 1 : 0;
         }
       },
       [&] {
         Limit(pool, 1);
         before = got;
       }},
      [&]() -> std::string {
        return got <= std::max(1, before + 1) ? ""
                                              : std::to_string(got) + " held";
      });

  ExpectAllSound("allocate x a lower limit", bound, found, 300);
}
#endif

}  // namespace
}  // namespace memtuned
