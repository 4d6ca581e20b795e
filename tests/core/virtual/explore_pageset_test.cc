// SPDX-License-Identifier: Apache-2.0
// Every schedule, within a bound, of two CPUs at the places where pages
// change hands: pageset and zone, pageset and drain, pageset and limits.
#include <gtest/gtest.h>

#include <array>

#include "core/recalculate.h"
#include "tests/core/virtual/virtual_pool.h"

namespace memtuned {
namespace {

class ExplorePagesetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  // Allocates into `held`, `n` blocks.
  static void Take(VirtualPool& pool, std::vector<Pfn>& held, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      held.push_back(pool.allocator().Allocate(0));
      CHECK(held.back().value != kNil);
    }
  }
};

TEST_F(ExplorePagesetTest, TwoRefillsAndFrees) {
  VirtualPool pool;
  const ExplorerOptions bound{.preemptions = 2};
  std::array<Pfn, 2> got;
  std::array<FreeResult, 2> freed;
  const auto body = [&](size_t i) {
    return [&, i] {
      got[i] = pool.allocator().Allocate(0);
      freed[i] = pool.allocator().Free(got[i], 0);
    };
  };

  const Exploration found =
      pool.Explore(bound, {body(0), body(1)}, [&]() -> std::string {
        for (size_t i : {0, 1}) {
          if (got[i].value == kNil) return "an allocation failed";
          if (freed[i] != FreeResult::kFreed) return "a free was refused";
        }
        return "";
      });

  ExpectAllSound("refill + free x 2", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, TwoAllocationsNeverShareABlock) {
  VirtualPool pool;
  const ExplorerOptions bound{.preemptions = 2};
  std::array<Pfn, 2> got;
  const auto body = [&](size_t i) {
    return [&, i] { got[i] = pool.allocator(i).Allocate(1); };
  };

  const Exploration found =
      pool.Explore(bound, {body(0), body(1)}, [&]() -> std::string {
        if (got[0].value == kNil || got[1].value == kNil) return "failed";
        return got[0].value / 2 == got[1].value / 2 ? "the same block" : "";
      });

  ExpectAllSound("refill of order 1 x 2 processes", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, TwoThreadsOfOneCpu) {
  VirtualPool pool;
  const ExplorerOptions bound{.cpus = 1, .preemptions = 2};
  std::array<Pfn, 2> got;
  pool.On(0, [&] {
    const Pfn pfn = pool.allocator().Allocate(0);
    pool.allocator().Free(pfn, 0);
  });
  const auto body = [&](size_t i) {
    return [&, i] {
      got[i] = pool.allocator().Allocate(0);
      if (pool.allocator().Free(got[i], 0) != FreeResult::kFreed) got[i] = {};
    };
  };

  const Exploration found =
      pool.Explore(bound, {body(0), body(1)}, [&]() -> std::string {
        return got[0].value == kNil || got[1].value == kNil ? "failed" : "";
      });

  ExpectAllSound("preempted on one CPU", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, AFlushAndARemoteDrain) {
  VirtualPool pool({.limits = SmallLimits(1, 2)});
  const ExplorerOptions bound{.preemptions = 2};
  std::vector<Pfn> held;
  pool.On(0, [&] {
    Take(pool, held, 2);
    CHECK(pool.allocator().Free(held[0], 0) == FreeResult::kFreed);
  });
  FreeResult freed;

  const Exploration found = pool.Explore(
      bound,
      {[&] { freed = pool.allocator().Free(held[1], 0); },
       [&] { pool.DrainPagesetOf(0); }},
      [&]() -> std::string {
        return freed == FreeResult::kFreed ? "" : "the free was refused";
      });

  ExpectAllSound("flush x remote drain", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, ARefillAndARemoteDrain) {
  VirtualPool pool({.limits = SmallLimits(2, 4)});
  const ExplorerOptions bound{.preemptions = 2};
  std::vector<Pfn> held;
  pool.On(0, [&] { Take(pool, held, 1); });  // and one is left
  std::array<Pfn, 2> got;

  const Exploration found = pool.Explore(
      bound,
      {[&] {
         for (Pfn& pfn : got) pfn = pool.allocator().Allocate(0);
       },
       [&] { pool.DrainPagesetOf(0); }},
      [&]() -> std::string {
        return got[0].value == kNil || got[1].value == kNil ? "failed" : "";
      });

  ExpectAllSound("refill x remote drain", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, AnAllocationAndNewLimits) {
  VirtualPool pool({.limits = SmallLimits(2, 4)});
  const ExplorerOptions bound{.preemptions = 2};
  Pfn got;
  PagesetLimits other = SmallLimits(1, 1);
  other.policy = PagesetPolicy::kMemtuned;

  const Exploration found = pool.Explore(
      bound,
      {[&] {
         got = pool.allocator().Allocate(0);
         CHECK(pool.allocator().Free(got, 0) == FreeResult::kFreed);
       },
       [&] {
         pool.segment().header().tuning_lock.Lock(pool.Thread().owner);
         pool.zone().PublishLimits(other);
         pool.segment().header().tuning_lock.Unlock();
       }},
      [&]() -> std::string {
        if (got.value == kNil) return "failed";
        return pool.zone().LimitsNow() == other ? "" : "limits were mixed";
      });

  ExpectAllSound("allocate + free x new limits", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, AHighOrderFreeAndAPolicyThatKeepsNone) {
  VirtualPool pool({.limits = SmallLimits(1, 8)});
  const ExplorerOptions bound{.preemptions = 3};
  std::vector<Pfn> held;
  pool.On(0, [&] { held.push_back(pool.allocator().Allocate(2)); });
  PagesetLimits fixed = SmallLimits(1, 6);
  fixed.policy = PagesetPolicy::kFixed;
  FreeResult freed;

  const Exploration found = pool.Explore(
      bound,
      {[&] { freed = pool.allocator().Free(held[0], 2); },
       [&] {
         pool.segment().header().tuning_lock.Lock(pool.Thread().owner);
         pool.zone().PublishLimits(fixed);
         pool.segment().header().tuning_lock.Unlock();
       }},
      [&]() -> std::string {
        return freed == FreeResult::kFreed ? "" : "the free was refused";
      });

  ExpectAllSound("free of order 2 x policy fixed", bound, found, 1000);
}

TEST_F(ExplorePagesetTest, AnAllocationAndARecalculation) {
  VirtualPool pool({.limits = SmallLimits(2, 4)});
  const ExplorerOptions bound{.preemptions = 2};
  Pfn got;

  const Exploration found = pool.Explore(
      bound,
      {[&] { got = pool.allocator().Allocate(0); },
       [&] {
         Recalculate(pool.segment(), RecalculateTrigger::kRequest,
                     pool.Thread().owner);
       }},
      [&]() -> std::string { return got.value == kNil ? "failed" : ""; });

  ExpectAllSound("allocate x recalculate", bound, found, 1000);
}

}  // namespace
}  // namespace memtuned
