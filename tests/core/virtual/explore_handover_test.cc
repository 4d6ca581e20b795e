// SPDX-License-Identifier: Apache-2.0
// Every schedule, within a bound, of blocks and chunks that change hands
// without a lock: depot, offers, and the last pages of a pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/core/virtual/virtual_pool.h"

namespace memtuned {
namespace {

class ExploreHandoverTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  static constexpr int kList = 0;  // order 0, ordinary

  // A chunk with one block, in the hands of the running fiber.
  static uint32_t ChunkInHand(VirtualPool& pool) {
    ChunkPool chunks(pool.segment().mapping(), pool.Thread());
    const uint32_t chunk = chunks.TakeEmpty(kList);
    CHECK(chunk != kNoChunk);
    Store(pool.segment().mapping().chunks[chunk].count, 0u);
    pool.zone().Lock(pool.Thread().owner);
    CHECK(pool.zone().FillChunkLocked(chunk, 0, PageType::kOrdinary, 1) == 1);
    pool.zone().Unlock(1);
    return chunk;
  }
  static bool Push(VirtualPool& pool, uint32_t chunk) {
    return ChunkPool(pool.segment().mapping(), pool.Thread())
        .DepotPush(pool.zone().shared(), kList, chunk);
  }
  static uint32_t Pop(VirtualPool& pool) {
    return ChunkPool(pool.segment().mapping(), pool.Thread())
        .DepotPop(pool.zone().shared(), kList);
  }
  // Whoever checks afterwards must find every chunk in a place.
  static void PutAll(VirtualPool& pool, std::initializer_list<uint32_t> hands) {
    for (uint32_t chunk : hands) {
      if (chunk != kNoChunk) CHECK(Push(pool, chunk));
    }
    const Mapping& m = pool.segment().mapping();
    for (uint32_t i = 0; i < m.nr_threads; ++i)
      Store(m.threads[i].pending, uint64_t{0});
  }
};

TEST_F(ExploreHandoverTest, DepotPushAndTwoPops) {
  VirtualPool pool({.fibers = 3, .topology = "1 node, 4 cpus"});
  const ExplorerOptions bound{.cpus = 3, .preemptions = 3};
  uint32_t first = 0, second = 0, third = 0;
  pool.On(0, [&] {
    first = ChunkInHand(pool);
    second = ChunkInHand(pool);
    third = ChunkInHand(pool);
    CHECK(Push(pool, first));
    CHECK(Push(pool, second));
  });
  std::array<uint32_t, 2> popped;

  // The chunk pushed comes back on top of what the others are popping.
  const Exploration found = pool.Explore(
      bound,
      {[&] { Push(pool, third); }, [&] { popped[0] = Pop(pool); },
       [&] { popped[1] = Pop(pool); }},
      [&]() -> std::string {
        if (popped[0] == kNoChunk || popped[1] == kNoChunk) return "no chunk";
        if (popped[0] == popped[1]) return "both popped one chunk";
        PutAll(pool, {popped[0], popped[1]});
        return "";
      },
      [&] { Store(pool.segment().mapping().chunks[third].next, 0u); });

  ExpectAllSound("depot push x pop x pop", bound, found, 2000);
}

// One CPU takes two chunks and puts another one and the first back, so that
// the stack's top and count are what they were, but not what is below, while
// another CPU is half way through its pop.
TEST_F(ExploreHandoverTest, AChunkThatComesBackIsNotMistaken) {
  VirtualPool pool;
  const ExplorerOptions bound{.preemptions = 3};
  uint32_t fresh = 0;
  pool.On(0, [&] {
    std::array<uint32_t, 3> chunks;
    for (uint32_t& chunk : chunks) chunk = ChunkInHand(pool);
    fresh = ChunkInHand(pool);
    for (uint32_t chunk : chunks) CHECK(Push(pool, chunk));
  });
  uint32_t kept = 0, popped = 0;

  const Exploration found =
      pool.Explore(bound,
                   {[&] { popped = Pop(pool); },
                    [&] {
                      const uint32_t top = Pop(pool);
                      kept = Pop(pool);
                      CHECK(Push(pool, fresh));
                      CHECK(Push(pool, top));
                    }},
                   [&]() -> std::string {
                     if (popped == kNoChunk || kept == kNoChunk)
                       return "no chunk";
                     if (popped == kept) return "both popped one chunk";
                     PutAll(pool, {popped, kept});
                     return "";
                   });

  ExpectAllSound("depot pop x (pop, pop, push, push)", bound, found, 5000);
}

TEST_F(ExploreHandoverTest, ARefillAndADrainOfTheDepot) {
  PagesetLimits limits = SmallLimits(1, 4);
  limits.policy = PagesetPolicy::kMemtuned;
  VirtualPool pool({.limits = limits, .depot_max_pages = 128});
  const ExplorerOptions bound{.preemptions = 2};
  pool.On(0, [&] {
    const uint32_t first = ChunkInHand(pool);
    CHECK(Push(pool, ChunkInHand(pool)));
    CHECK(Push(pool, first));
  });
  Pfn got;

  const Exploration found = pool.Explore(
      bound,
      {[&] { got = pool.allocator().Allocate(0); }, [&] { pool.DrainDepot(); }},
      [&]() -> std::string { return got.value == kNil ? "failed" : ""; });

  ExpectAllSound("refill x drain of the depot", bound, found, 1000);
}

TEST_F(ExploreHandoverTest, OneOfTwoAdoptersWins) {
  VirtualPool pool;
  const ExplorerOptions bound{.preemptions = 4};
  Pfn block;
  pool.On(0, [&] {
    block = pool.allocator(0).Allocate(0);
    CHECK(pool.allocator(0).Offer(block, 0) == FreeResult::kFreed);
  });
  std::array<FreeResult, 2> adopted;
  const auto body = [&](size_t i) {
    return [&, i] {
      adopted[i] = pool.allocator(static_cast<int>(i)).Adopt(block, 0);
    };
  };

  const Exploration found =
      pool.Explore(bound, {body(0), body(1)}, [&]() -> std::string {
        const auto wins =
            std::count(adopted.begin(), adopted.end(), FreeResult::kFreed);
        return wins == 1 ? "" : std::to_string(wins) + " adopters won";
      });

  ExpectAllSound("adopt x adopt", bound, found, 20);
}

TEST_F(ExploreHandoverTest, AnOfferIsRevokedOrAdopted) {
  VirtualPool pool;
  const ExplorerOptions bound{.preemptions = 4};
  Pfn block;
  pool.On(0, [&] { block = pool.allocator(0).Allocate(0); });
  FreeResult offered, revoked, adopted;

  const Exploration found =
      pool.Explore(bound,
                   {[&] {
                      offered = pool.allocator(0).Offer(block, 0);
                      revoked = pool.allocator(0).Revoke(block, 0);
                    },
                    [&] { adopted = pool.allocator(1).Adopt(block, 0); }},
                   [&]() -> std::string {
                     if (offered != FreeResult::kFreed) return "not offered";
                     return (revoked == FreeResult::kFreed) !=
                                    (adopted == FreeResult::kFreed)
                                ? ""
                                : "revoked and adopted, or neither";
                   });

  ExpectAllSound("offer + revoke x adopt", bound, found, 50);
}

// The offer to one process must not be taken with the word of the earlier
// offer to everybody.
TEST_F(ExploreHandoverTest, AnEarlierOfferToAllIsNotMistaken) {
  VirtualPool pool({.fibers = 2});
  const ExplorerOptions bound{.preemptions = 4};
  Pfn block;
  pool.On(0, [&] {
    block = pool.allocator(0).Allocate(0);
    CHECK(pool.allocator(0).Offer(block, 0) == FreeResult::kFreed);
  });
  constexpr ProcessOwner kSomebodyElse = 0x7fffffff;
  FreeResult revoked, adopted, offered;

  const Exploration found = pool.Explore(
      bound,
      {[&] {
         revoked = pool.allocator(0).Revoke(block, 0);
         offered = pool.allocator(0).Offer(block, 0, kSomebodyElse);
       },
       [&] { adopted = pool.allocator(1).Adopt(block, 0); }},
      [&]() -> std::string {
        if ((revoked == FreeResult::kFreed) ==
            (adopted == FreeResult::kFreed)) {
          return "revoked and adopted, or neither";
        }
        return offered == revoked || adopted == FreeResult::kFreed ? ""
                                                                   : "lost";
      });

  ExpectAllSound("revoke + offer to another x adopt", bound, found, 50);
}

TEST_F(ExploreHandoverTest, AFreeAndAnAdoption) {
  VirtualPool pool;
  const ExplorerOptions bound{.preemptions = 3};
  Pfn block;
  pool.On(0, [&] {
    block = pool.allocator(0).Allocate(0);
    CHECK(pool.allocator(0).Offer(block, 0) == FreeResult::kFreed);
  });
  FreeResult freed, adopted;

  const Exploration found = pool.Explore(
      bound,
      {[&] { freed = pool.allocator(0).Free(block, 0); },
       [&] { adopted = pool.allocator(1).FreeAdopted(block, 0); }},
      [&]() -> std::string {
        return (freed == FreeResult::kFreed) != (adopted == FreeResult::kFreed)
                   ? ""
                   : "freed and adopted, or neither";
      });

  ExpectAllSound("free x free adopted", bound, found, 500);
}

// The zone is empty, a third CPU holds two pages: both get one.
TEST_F(ExploreHandoverTest, TheLastPagesGoToWhoeverAsks) {
  VirtualPool pool({.fibers = 3,
                    .topology = "1 node, 4 cpus",
                    .node_pages = {64},
                    .limits = SmallLimits(1, 4)});
  const ExplorerOptions bound{.cpus = 3, .preemptions = 2};
  pool.On(2, [&] {
    std::vector<Pfn> all;
    for (;;) {
      const Pfn pfn = pool.allocator(1).Allocate(0);
      if (pfn.value == kNil) break;
      all.push_back(pfn);
    }
    CHECK(all.size() == 64);
    CHECK(pool.allocator(1).Free(all[10], 0) == FreeResult::kFreed);
    CHECK(pool.allocator(1).Free(all[20], 0) == FreeResult::kFreed);
    CHECK(pool.zone().FreePages() == 0);
  });
  std::array<Pfn, 2> got;

  const Exploration found = pool.Explore(
      bound,
      {[&] { got[0] = pool.allocator().Allocate(0); },
       [&] { got[1] = pool.allocator().Allocate(0); }},
      [&]() -> std::string {
        return got[0].value == kNil || got[1].value == kNil ? "failed" : "";
      });

  ExpectAllSound("two pages left x two takers", bound, found, 1000);
}

}  // namespace
}  // namespace memtuned
