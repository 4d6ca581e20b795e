// SPDX-License-Identifier: Apache-2.0
// Deaths while blocks and chunks change hands: offers, drains, the depot.
#include "core/mm/chunk_pool.h"
#include "tests/core/virtual/crash_cases.h"

namespace memtuned {
namespace {

// Blocks of two orders in the pageset of the neighbour's CPU: loaded, spare
// and deque of order 0, and a few of order 1.
void FillTheNeighbour(CrashPool& pool) {
  pool.As(kNeighbour, [&] {
    for (int i = 0; i < 133; ++i) pool.Take(0);
    for (int i = 0; i < 3; ++i) pool.Take(1);
    for (int i = 0; i < 130; ++i) pool.Give(0);
    for (int i = 0; i < 2; ++i) pool.Give(1);
  });
}

void TakeAs(CrashPool& pool, uint32_t fiber, int order) {
  pool.As(fiber, [&] { pool.Take(order); });
}

void OfferAs(CrashPool& pool, uint32_t fiber, int order) {
  pool.As(fiber, [&] {
    pool.Take(order);
    pool.Offer(order);
  });
}

// The offerer is the neighbour, who wants it back if nobody took it.
void RevokeAndWork(CrashPool& pool) {
  if (env::CurrentFiber() == kNeighbour) pool.Revoke();
  pool.Work();
}

// The offerer is the victim; a successor may adopt.
void AdoptAndWork(CrashPool& pool) {
  if (env::CurrentFiber() == kSuccessor) pool.Adopt();
  pool.Work();
}

void AddOffers(std::vector<CrashCase>& cases) {
  const CrashPoolOptions small{.limits = LimitsOf(Policy::kAdaptive, 2, 8)};
  cases.push_back({.name = "Offer",
                   .pool = small,
                   .prepare = [](CrashPool& p) { TakeAs(p, kVictim, 2); },
                   .victim = [](CrashPool& p) { p.Offer(2); },
                   .meanwhile = [](CrashPool& p) { p.Adopt(); },
                   .work = AdoptAndWork});
  cases.push_back({.name = "Revoke",
                   .pool = small,
                   .prepare = [](CrashPool& p) { OfferAs(p, kVictim, 1); },
                   .victim = [](CrashPool& p) { p.Revoke(); },
                   .meanwhile = [](CrashPool& p) { p.Adopt(); },
                   .work = AdoptAndWork});
  const auto telling = [&small](uint64_t pages) {
    CrashPoolOptions options = small;
    options.pages_not_told = pages;
    return options;
  };
  cases.push_back({.name = "Adopt",
                   .pool = telling(2),
                   .prepare = [](CrashPool& p) { OfferAs(p, kNeighbour, 1); },
                   .victim = [](CrashPool& p) { p.Adopt(); },
                   .meanwhile = [](CrashPool& p) { p.Revoke(); },
                   .work = RevokeAndWork});
  cases.push_back({.name = "FreeAdopted",
                   .pool = telling(1),
                   .prepare = [](CrashPool& p) { OfferAs(p, kNeighbour, 0); },
                   .victim =
                       [](CrashPool& p) {
                         const auto& block = p.OnOffer().front();
                         p.AllocatorHere().FreeAdopted(block.pfn, block.order);
                       },
                   .meanwhile = [](CrashPool& p) { p.Revoke(); },
                   .work = RevokeAndWork});
  cases.push_back({.name = "FreeOfAnOffer",
                   .pool = small,
                   .prepare = [](CrashPool& p) { OfferAs(p, kVictim, 0); },
                   .victim =
                       [](CrashPool& p) {
                         const auto& block = p.OnOffer().front();
                         p.AllocatorHere().Free(block.pfn, block.order);
                       },
                   .meanwhile = [](CrashPool& p) { p.Adopt(); },
                   .work = AdoptAndWork});
  cases.push_back({.name = "SetLabel",
                   .pool = small,
                   .prepare = [](CrashPool& p) { TakeAs(p, kVictim, 0); },
                   .victim =
                       [](CrashPool& p) {
                         const auto& block = p.HandsHere().front();
                         p.AllocatorHere().SetLabel(block.pfn, block.order, 7);
                       }});
}

void AddDrains(std::vector<CrashCase>& cases) {
  cases.push_back({.name = "DrainAPageset",
                   .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 500)},
                   .prepare = FillTheNeighbour,
                   .victim = [](CrashPool& p) { p.DrainPagesetOf(1); }});
  // What is above a floating high that comes down.
  PagesetLimits floating = LimitsOf(Policy::kAdaptive, 2, 500);
  floating.high_min = 8;
  floating.scale_max = 6;
  cases.push_back({.name = "DecayAPageset",
                   .pool = {.limits = floating},
                   .prepare = FillTheNeighbour,
                   .victim = [](CrashPool& p) { p.DecayPagesetOf(1); }});
  // The same with few blocks, for explored runs.
  cases.push_back({.name = "DrainASmallPageset",
                   .pool = {.limits = LimitsOf(Policy::kAdaptive, 2, 500)},
                   .prepare = [](CrashPool& p) { TakeAs(p, kNeighbour, 0); },
                   .victim = [](CrashPool& p) { p.DrainPagesetOf(1); },
                   .meanwhile = [](CrashPool& p) { p.Take(0); }});
  cases.push_back({.name = "DrainADepot",
                   .pool = {.limits = LimitsOf(Policy::kMemtuned, 2, 500),
                            .depot_max_pages = 256},
                   .prepare =
                       [](CrashPool& p) {
                         ParkChunk(p, 0, 5);
                         ParkChunk(p, 0, 3);
                         ParkChunk(p, 2, 2);
                       },
                   .victim = [](CrashPool& p) { p.DrainDepot(); }});
}

void AddChunks(std::vector<CrashCase>& cases) {
  const CrashPoolOptions with_depot{.limits = LimitsOf(Policy::kMemtuned, 1, 8),
                                    .depot_max_pages = 256};
  // A pop and a push, and another's pop in between.
  cases.push_back({.name = "DepotPopAndPush",
                   .pool = with_depot,
                   .prepare =
                       [](CrashPool& p) {
                         for (int i = 0; i < 3; ++i) ParkChunk(p, 0, 2);
                       },
                   .victim =
                       [](CrashPool& p) {
                         ChunkPool chunks(p.mapping(), p.ThreadHere());
                         const uint32_t chunk =
                             chunks.DepotPop(p.zone().shared(), 0);
                         if (chunk == kNoChunk) return;
                         if (!chunks.DepotPush(p.zone().shared(), 0, chunk)) {
                           p.Complain("the depot is full");
                         }
                       },
                   .meanwhile = [](CrashPool& p) { p.Take(0); }});
  cases.push_back({.name = "TakeAndGiveAnEmptyChunk",
                   .pool = with_depot,
                   .victim =
                       [](CrashPool& p) {
                         ChunkPool chunks(p.mapping(), p.ThreadHere());
                         for (int i = 0; i < 2; ++i) {
                           chunks.GiveEmpty(chunks.TakeEmpty(0));
                         }
                       },
                   .meanwhile =
                       [](CrashPool& p) {
                         ChunkPool chunks(p.mapping(), p.ThreadHere());
                         chunks.GiveEmpty(chunks.TakeEmpty(1));
                       }});
}

}  // namespace

std::vector<CrashCase> HandoverCrashCases() {
  std::vector<CrashCase> cases;
  AddOffers(cases);
  AddDrains(cases);
  AddChunks(cases);
  return cases;
}

}  // namespace memtuned
