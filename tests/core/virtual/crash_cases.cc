// SPDX-License-Identifier: Apache-2.0
#include "tests/core/virtual/crash_cases.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/mm/chunk_pool.h"

namespace memtuned {

namespace {

// Also with guards that are swapped instead of biased to a CPU.
constexpr std::string_view kAlsoWithTrylock[] = {
    "TakeFromTheLoadedChunk",  "RefillSplitsALargeBlock_memtuned",
    "GiveToTheLoadedChunk",    "GiveOfASiblingsBlock",
    "FlushToTheZone_adaptive", "DrainASmallPageset"};

void AddTrylock(std::vector<CrashCase>& cases) {
  for (std::string_view name : kAlsoWithTrylock) {
    const auto it =
        std::find_if(cases.begin(), cases.end(),
                     [&](const CrashCase& one) { return one.name == name; });
    CHECK(it != cases.end());
    CrashCase copy = *it;
    copy.name += kTrylockSuffix;
    copy.pool.guard = GuardKind::kTrylock;
    cases.push_back(std::move(copy));
  }
}

}  // namespace

const std::vector<CrashCase>& AllCrashCases() {
  static const auto* all = [] {
    auto* cases = new std::vector<CrashCase>;
    for (auto* table :
         {&AllocateCrashCases, &FreeCrashCases, &HandoverCrashCases,
          &ControlCrashCases, &ReapCrashCases}) {
      for (CrashCase& one : table()) cases->push_back(std::move(one));
    }
    AddTrylock(*cases);
    return cases;
  }();
  return *all;
}

const CrashCase& CrashCaseNamed(std::string_view name) {
  const auto& all = AllCrashCases();
  const auto it =
      std::find_if(all.begin(), all.end(),
                   [&](const CrashCase& one) { return one.name == name; });
  CHECK(it != all.end());
  return *it;
}

PagesetLimits LimitsOf(PagesetPolicy policy, uint32_t batch, uint32_t high) {
  PagesetLimits limits = SmallLimits(batch, high);
  limits.policy = policy;
  return limits;
}

// Parks a chunk of `blocks` blocks in the depot, by hand.
void ParkChunk(CrashPool& pool, int order, uint32_t blocks) {
  pool.As(kReaper, [&] {
    ChunkPool chunks(pool.mapping(), pool.ThreadHere());
    const int list = ListOf(OrderSlot(order), PageType::kOrdinary);
    const uint32_t chunk = chunks.TakeEmpty(list);
    Store(pool.mapping().chunks[chunk].count, 0u);
    Zone& zone = pool.zone();
    zone.Lock(pool.ThreadHere().owner);
    CHECK(zone.FillChunkLocked(chunk, order, PageType::kOrdinary, blocks) ==
          blocks);
    zone.Unlock(blocks);
    CHECK(chunks.DepotPush(zone.shared(), list, chunk));
  });
}

std::string NameWith(const char* name, PagesetPolicy policy) {
  return std::string(name) + '_' + PolicyName(policy);
}

}  // namespace memtuned
