// SPDX-License-Identifier: Apache-2.0
// Deaths while allocating: from the pageset, the depot, the zone's fragments
// and large blocks, past the pageset, and when there is hardly anything left.
#include "tests/core/virtual/crash_cases.h"

namespace memtuned {
namespace {

std::function<void(CrashPool&)> TakeOne(int order,
                                        PageType type = PageType::kOrdinary) {
  return [order, type](CrashPool& pool) { pool.Take(order, type); };
}

void Times(int n, const std::function<void()>& action) {
  for (int i = 0; i < n; ++i) action();
}

// Leaves `blocks` single pages free, none of which can merge.
void MakeFragments(CrashPool& pool, int blocks) {
  pool.As(kReaper, [&] {
    std::vector<CrashPool::Block>& hands = pool.HandsHere();
    Times(2 * blocks, [&] { pool.Take(0); });
    std::vector<CrashPool::Block> odd;
    for (size_t i = 1; i < hands.size(); i += 2) odd.push_back(hands[i]);
    std::erase_if(hands, [](const auto& b) { return b.pfn.value % 2 != 0; });
    std::swap(odd, hands);
    pool.GiveAll();
    std::swap(odd, hands);
    pool.DrainAll();
  });
}

void AddRefills(std::vector<CrashCase>& cases) {
  // Of pages whose words were never written.
  cases.push_back(
      {.name = "RefillOfUntouchedPages",
       .pool = {.limits = LimitsOf(Policy::kMemtuned, 4, 16)},
       .prepare = [](CrashPool& p) { p.As(kReaper, [&] { p.Take(8); }); },
       .victim = TakeOne(0)});
  for (PagesetPolicy policy : kCrashPolicies) {
    const CrashPoolOptions small{.limits = LimitsOf(policy, 4, 16)};
    cases.push_back({.name = NameWith("RefillSplitsALargeBlock", policy),
                     .pool = small,
                     .victim = TakeOne(0)});
    cases.push_back({.name = NameWith("RefillTakesFragments", policy),
                     .pool = small,
                     .prepare = [](CrashPool& pool) { MakeFragments(pool, 5); },
                     .victim = TakeOne(0)});
    if (policy == Policy::kFixed) continue;
    cases.push_back({.name = NameWith("RefillOfOrderTwo", policy),
                     .pool = {.limits = LimitsOf(policy, 8, 32)},
                     .victim = TakeOne(2)});
  }
  // Two chunks, the second one not full: under one hold, and under two.
  for (PagesetPolicy policy : {Policy::kFixed, Policy::kMemtuned}) {
    cases.push_back({.name = NameWith("RefillOfTwoChunks", policy),
                     .pool = {.limits = LimitsOf(policy, 70, 200)},
                     .victim = TakeOne(0)});
  }
  cases.push_back({.name = "RefillOfHugeBlocks",
                   .pool = {.node_pages = {4096},
                            .limits = LimitsOf(Policy::kAdaptive, 4, 4096)},
                   .victim = TakeOne(9)});
  // The loaded chunk is there, and empty.
  cases.push_back({.name = "RefillOfAnEmptyChunk",
                   .pool = {.limits = LimitsOf(Policy::kMemtuned, 1, 8)},
                   .prepare =
                       [](CrashPool& pool) {
                         pool.As(kVictim,
                                 [&] { Times(2, [&] { pool.Take(0); }); });
                       },
                   .victim = TakeOne(0)});
}

void AddPagesetTakes(std::vector<CrashCase>& cases) {
  const auto one_cached = [](int order) {
    return [order](CrashPool& pool) {
      pool.As(kVictim, [&] {
        pool.Take(order);
        pool.Give(order);
      });
    };
  };
  cases.push_back({.name = "TakeFromTheLoadedChunk",
                   .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 8)},
                   .prepare = one_cached(0),
                   .victim = TakeOne(0),
                   .meanwhile = [](CrashPool& pool) { pool.Work(); }});
  cases.push_back({.name = "TakeOfOrderThree",
                   .pool = {.limits = LimitsOf(Policy::kMemtuned, 2, 64)},
                   .prepare = one_cached(3),
                   .victim = TakeOne(3)});
  // 130 blocks: 2 loaded, 64 in the spare, 64 in the deque.
  const auto spare_and_deque = [](int taken) {
    return [taken](CrashPool& pool) {
      pool.As(kVictim, [&] {
        Times(130, [&] { pool.Take(0); });
        Times(130, [&] { pool.Give(0); });
        Times(taken, [&] { pool.Take(0); });
      });
    };
  };
  const CrashPoolOptions roomy{.limits = LimitsOf(Policy::kAdaptive, 2, 500)};
  cases.push_back({.name = "TakeRotatesTheSpareIn",
                   .pool = roomy,
                   .prepare = spare_and_deque(2),
                   .victim = TakeOne(0)});
  cases.push_back({.name = "TakeRotatesTheDequeIn",
                   .pool = roomy,
                   .prepare = spare_and_deque(2 + 64),
                   .victim = TakeOne(0)});
}

void AddDepotTakes(std::vector<CrashCase>& cases) {
  const CrashPoolOptions with_depot{.limits = LimitsOf(Policy::kMemtuned, 1, 8),
                                    .depot_max_pages = 256};
  cases.push_back({.name = "TakeFromTheDepot",
                   .pool = with_depot,
                   .prepare =
                       [](CrashPool& pool) {
                         ParkChunk(pool, 0, 4);
                         ParkChunk(pool, 0, 3);
                       },
                   .victim = TakeOne(0)});
  // The empty loaded chunk becomes the spare, or one too many.
  for (int loaded : {1, 2}) {
    cases.push_back(
        {.name = "TakeFromTheDepotWithChunks_" + std::to_string(loaded),
         .pool = with_depot,
         .prepare =
             [loaded](CrashPool& pool) {
               for (int i = 0; i < loaded + 1; ++i) ParkChunk(pool, 0, 2);
               pool.As(kVictim,
                       [&] { Times(2 * loaded, [&] { pool.Take(0); }); });
             },
         .victim = TakeOne(0)});
  }
}

void AddDirectTakes(std::vector<CrashCase>& cases) {
  const CrashPoolOptions two{.node_pages = {2048},
                             .limits = LimitsOf(Policy::kAdaptive, 2, 8)};
  for (int order : {4, 10}) {
    cases.push_back({.name = "TakePastThePageset_" + std::to_string(order),
                     .pool = two,
                     .victim = TakeOne(order)});
  }
  cases.push_back({.name = "TakeOfOrderOnePastThePageset_fixed",
                   .pool = {.limits = LimitsOf(Policy::kFixed, 2, 8)},
                   .victim = TakeOne(1)});
}

void AddPurgeableTakes(std::vector<CrashCase>& cases) {
  const CrashPoolOptions one{.limits = LimitsOf(Policy::kAdaptive, 2, 8)};
  cases.push_back({.name = "ConvertALargestBlock",
                   .pool = one,
                   .victim = TakeOne(0, PageType::kPurgeable)});
  // Three quarters of the second page block are free, then one quarter.
  for (bool converts : {true, false}) {
    cases.push_back(
        {.name = converts ? "ConvertAPageBlock" : "TakeOfTheOtherType",
         .pool = one,
         .prepare =
             [converts](CrashPool& pool) {
               pool.As(kReaper, [&] {
                 pool.Take(9);
                 pool.Take(7);
                 if (!converts) pool.Take(8);
                 pool.DrainAll();
               });
             },
         .victim = TakeOne(0, PageType::kPurgeable)});
  }
}

void AddScarceTakes(std::vector<CrashCase>& cases) {
  // Little is left, all of it in the neighbour's pageset.
  cases.push_back({.name = "FetchWhatOthersHold",
                   .pool = {.node_pages = {64},
                            .limits = LimitsOf(Policy::kMemtuned, 1, 8),
                            .depot_max_pages = 64},
                   .prepare =
                       [](CrashPool& pool) {
                         pool.As(kNeighbour, [&] {
                           Times(60, [&] { pool.Take(0); });
                           Times(4, [&] { pool.Give(0); });
                         });
                         ParkChunk(pool, 0, 4);
                       },
                   .victim = TakeOne(1),
                   .work = [](CrashPool& pool) { pool.Take(0); }});
  // The next section comes into being: a partial one.
  cases.push_back({.name = "TakeAddsASection",
                   .pool = {.node_pages = {kPagesPerSection + 600},
                            .first_sections = 1,
                            .limits = LimitsOf(Policy::kFixed, 2, 8)},
                   .prepare =
                       [](CrashPool& pool) {
                         pool.As(kReaper, [&] {
                           Times(31, [&] { pool.Take(10); });
                           for (int order = 9; order >= 3; --order) {
                             pool.Take(order);
                           }
                           pool.DrainAll();
                         });
                       },
                   .victim = TakeOne(4)});
  // Everybody had pages of the small section, nobody of the other one yet.
  cases.push_back({.name = "TakeFromANewSection",
                   .pool = {.node_pages = {kPagesPerSection + 48},
                            .limits = LimitsOf(Policy::kFixed, 1, 8)},
                   .prepare =
                       [](CrashPool& pool) {
                         pool.As(kReaper, [&] {
                           pool.Take(5);
                           pool.Take(4);
                         });
                       },
                   .victim = TakeOne(0)});
  cases.push_back({.name = "TakeCarvesASection",
                   .pool = {.node_pages = {kPagesPerSection},
                            .limits = LimitsOf(Policy::kAdaptive, 1, 8)},
                   .victim = TakeOne(0)});
}

}  // namespace

std::vector<CrashCase> AllocateCrashCases() {
  std::vector<CrashCase> cases;
  AddPagesetTakes(cases);
  AddRefills(cases);
  AddDepotTakes(cases);
  AddDirectTakes(cases);
  AddPurgeableTakes(cases);
  AddScarceTakes(cases);
  cases.push_back({.name = "AllocateBulk",
                   .pool = {.limits = LimitsOf(Policy::kMemtuned, 3, 16)},
                   .victim = [](CrashPool& pool) {
                     std::array<Pfn, 6> out;
                     if (pool.AllocatorHere().AllocateBulk(0, out) != 6) {
                       pool.Complain("bulk allocation fell short");
                     }
                     for (Pfn pfn : out) pool.HandsHere().push_back({pfn, 0});
                   }});
  return cases;
}

}  // namespace memtuned
