// SPDX-License-Identifier: Apache-2.0
// Deaths while freeing: into the pageset, out of it to the zone or the depot,
// and past it.
#include "tests/core/virtual/crash_cases.h"

namespace memtuned {
namespace {

std::function<void(CrashPool&)> GiveOne(int order) {
  return [order](CrashPool& pool) { pool.Give(order); };
}

// The victim takes some and gives some of them back.
std::function<void(CrashPool&)> TakeAndGive(int order, int taken, int given) {
  return [=](CrashPool& pool) {
    pool.As(kVictim, [&] {
      for (int i = 0; i < taken; ++i) pool.Take(order);
      for (int i = 0; i < given; ++i) pool.Give(order);
    });
  };
}

// ... and the limits are others from then on.
std::function<void(CrashPool&)> TakeAndGive(int order, int taken, int given,
                                            const PagesetLimits& then) {
  const auto before = TakeAndGive(order, taken, given);
  return [=](CrashPool& pool) {
    before(pool);
    pool.Publish(then);
  };
}

void AddPagesetGives(std::vector<CrashCase>& cases) {
  cases.push_back({.name = "GiveToTheLoadedChunk",
                   .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 8)},
                   .prepare = TakeAndGive(0, 2, 0),
                   .victim = GiveOne(0),
                   .meanwhile = [](CrashPool& pool) { pool.Work(); }});
  cases.push_back({.name = "GiveOfOrderThree",
                   .pool = {.limits = LimitsOf(Policy::kMemtuned, 2, 64)},
                   .prepare = TakeAndGive(3, 1, 0),
                   .victim = GiveOne(3)});
  // A block that another thread of the process took: by compare and swap.
  cases.push_back(
      {.name = "GiveOfASiblingsBlock",
       .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 8)},
       .prepare =
           [](CrashPool& pool) { pool.As(kSibling, [&] { pool.Take(0); }); },
       .victim = GiveOne(0)});
  const PagesetLimits roomy = LimitsOf(Policy::kAdaptive, 2, 500);
  // The loaded chunk is full; there is no spare, one with room, a full one.
  cases.push_back({.name = "GiveMakesASpare",
                   .pool = {.limits = roomy},
                   .prepare = TakeAndGive(0, 65, 63),
                   .victim = GiveOne(0)});
  cases.push_back({.name = "GiveRotatesTheSpareIn",
                   .pool = {.limits = roomy},
                   .prepare =
                       [](CrashPool& pool) {
                         // Takes until the full spare is loaded and the empty
                         // one the spare.
                         TakeAndGive(0, 66, 66)(pool);
                         TakeAndGive(0, 3, 1)(pool);
                       },
                   .victim = GiveOne(0)});
  cases.push_back({.name = "GivePushesTheSpareDown",
                   .pool = {.limits = roomy},
                   .prepare = TakeAndGive(0, 129, 127),
                   .victim = GiveOne(0)});
}

void AddFlushes(std::vector<CrashCase>& cases) {
  for (PagesetPolicy policy : kCrashPolicies) {
    cases.push_back({.name = NameWith("FlushToTheZone", policy),
                     .pool = {.limits = LimitsOf(policy, 3, 8)},
                     .prepare = TakeAndGive(0, 10, 5),
                     .victim = GiveOne(0)});
    // The pool's last page in use: it merges up to the largest order.
    cases.push_back({.name = NameWith("FlushMergesAllOrders", policy),
                     .pool = {.limits = LimitsOf(policy, 1, 1)},
                     .prepare = TakeAndGive(0, 1, 0),
                     .victim = GiveOne(0)});
  }
  PagesetLimits chunked = LimitsOf(Policy::kAdaptive, 3, 8);
  chunked.chunked_flush = true;
  chunked.scale_max = 2;
  cases.push_back({.name = "FlushInSeveralHolds",
                   .pool = {.limits = LimitsOf(Policy::kAdaptive, 3, 8)},
                   .prepare =
                       [chunked](CrashPool& pool) {
                         TakeAndGive(0, 10, 0, chunked)(pool);
                         TakeAndGive(0, 0, 5)(pool);
                       },
                   .victim = GiveOne(0)});
  // A whole chunk goes to the depot, then one that finds it full.
  for (uint64_t depot : {uint64_t{256}, uint64_t{64}}) {
    cases.push_back({.name = "ParkInTheDepot_" + std::to_string(depot),
                     .pool = {.limits = LimitsOf(Policy::kMemtuned, 2, 500),
                              .depot_max_pages = depot},
                     .prepare = TakeAndGive(
                         0, 200, 199, LimitsOf(Policy::kMemtuned, 127, 130)),
                     .victim = GiveOne(0)});
  }
}

// Runs of order 1, until a free finds so many before it that it flushes.
void AddFreeHighFlushes(std::vector<CrashCase>& cases) {
  const auto give = [](int blocks) {
    return [blocks](CrashPool& pool) {
      for (int i = 0; i < blocks; ++i) pool.Give(1);
    };
  };
  const auto limits = [](Policy policy, uint32_t high, uint32_t threshold) {
    PagesetLimits limits = LimitsOf(policy, 2, high);
    limits.free_high_threshold = threshold;
    limits.scale_max = 5;
    return limits;
  };
  cases.push_back({.name = "FreeHighFlush_watermark",
                   .pool = {.limits = limits(Policy::kWatermark, 8, 1)},
                   .prepare = TakeAndGive(1, 8, 4),
                   .victim = give(1)});
  cases.push_back({.name = "FreeHighFlush_adaptive",
                   .pool = {.limits = limits(Policy::kAdaptive, 32, 6)},
                   .prepare = TakeAndGive(1, 6, 3),
                   .victim = give(1)});
  // Its free-high is at `high`; it leaves the loaded chunk alone.
  PagesetLimits ours = limits(Policy::kMemtuned, 160, 8);
  ours.batch = 8;
  cases.push_back({.name = "FreeHighFlush_memtuned",
                   .pool = {.limits = ours},
                   .prepare = TakeAndGive(1, 81, 80),
                   .victim = give(1)});
}

void AddDirectGives(std::vector<CrashCase>& cases) {
  for (int order : {4, 10}) {
    cases.push_back({.name = "GivePastThePageset_" + std::to_string(order),
                     .pool = {.node_pages = {2048},
                              .limits = LimitsOf(Policy::kAdaptive, 2, 8)},
                     .prepare = TakeAndGive(order, 1, 0),
                     .victim = GiveOne(order)});
  }
  // It joins the block before it, which was free already.
  cases.push_back({.name = "GiveOfARightHalfPastThePageset",
                   .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 8)},
                   .prepare = TakeAndGive(4, 2, 1),
                   .victim = GiveOne(4)});
  cases.push_back({.name = "GiveOfOrderOnePastThePageset_fixed",
                   .pool = {.limits = LimitsOf(Policy::kFixed, 2, 8)},
                   .prepare = TakeAndGive(1, 1, 0),
                   .victim = GiveOne(1)});
  cases.push_back({.name = "GiveOfAHugeBlock",
                   .pool = {.node_pages = {2048},
                            .limits = LimitsOf(Policy::kAdaptive, 1, 512)},
                   .prepare = TakeAndGive(9, 1, 0),
                   .victim = GiveOne(9)});
  // Its policy no longer keeps the order: the list is drained first.
  cases.push_back(
      {.name = "GiveAfterThePolicyChanged",
       .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 16)},
       .prepare = TakeAndGive(1, 4, 3, LimitsOf(Policy::kFixed, 2, 16)),
       .victim = [](CrashPool& pool) {
         pool.Take(0);
         pool.Give(0);
       }});
}

}  // namespace

std::vector<CrashCase> FreeCrashCases() {
  std::vector<CrashCase> cases;
  AddPagesetGives(cases);
  AddFlushes(cases);
  AddFreeHighFlushes(cases);
  AddDirectGives(cases);
  cases.push_back({.name = "FreeBulk",
                   .pool = {.limits = LimitsOf(Policy::kMemtuned, 3, 8)},
                   .prepare = TakeAndGive(0, 10, 4),
                   .victim = [](CrashPool& pool) {
                     std::vector<Pfn> blocks;
                     for (const auto& block : pool.HandsHere()) {
                       blocks.push_back(block.pfn);
                     }
                     pool.HandsHere().clear();
                     if (pool.AllocatorHere().FreeBulk(0, blocks) != 6) {
                       pool.Complain("bulk free fell short");
                     }
                   }});
  return cases;
}

}  // namespace memtuned
