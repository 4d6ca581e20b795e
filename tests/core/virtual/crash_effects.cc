// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "tests/core/virtual/crash_cases.h"

namespace memtuned {
namespace {

struct Effect {
  std::string_view name, effect;
};

// Pages, holds of the zone lock and blocks that are counted; then the lists of
// the victim's pageset where they changed: blocks loaded, in the spare, and
// chunks in the deque.
constexpr Effect kEffects[] = {
    {"TakeFromTheLoadedChunk", "; list 0: 1"},
    {"TakeOfOrderThree", "; list 6: 1"},
    {"TakeRotatesTheSpareIn", "; list 0: 63+0 and 1"},
    {"TakeRotatesTheDequeIn", "; list 0: 63+0"},
    {"RefillOfUntouchedPages", "holds 1, refilled 4; list 0: 3"},
    {"RefillSplitsALargeBlock_fixed", "holds 1, refilled 4; list 0: 3"},
    {"RefillTakesFragments_fixed", "holds 1, refilled 4; list 0: 3"},
    {"RefillSplitsALargeBlock_watermark", "holds 1, refilled 4; list 0: 3"},
    {"RefillTakesFragments_watermark", "holds 1, refilled 4; list 0: 3"},
    {"RefillOfOrderTwo_watermark", "holds 1, refilled 8; list 4: 1"},
    {"RefillSplitsALargeBlock_adaptive", "holds 1, refilled 4; list 0: 3"},
    {"RefillTakesFragments_adaptive", "holds 1, refilled 4; list 0: 3"},
    {"RefillOfOrderTwo_adaptive", "holds 1, refilled 8; list 4: 1"},
    {"RefillSplitsALargeBlock_memtuned", "holds 1, refilled 4; list 0: 3"},
    {"RefillTakesFragments_memtuned", "holds 1, refilled 4; list 0: 3"},
    {"RefillOfOrderTwo_memtuned", "holds 1, refilled 8; list 4: 1"},
    {"RefillOfTwoChunks_fixed", "holds 1, refilled 70; list 0: 63 and 1"},
    {"RefillOfTwoChunks_memtuned", "holds 2, refilled 70; list 0: 63 and 1"},
    {"RefillOfHugeBlocks", "holds 1, refilled 1024; list 8: 1"},
    {"RefillOfAnEmptyChunk", "holds 1, refilled 2; list 0: 1"},
    {"TakeFromTheDepot", "popped 1; list 0: 2"},
    {"TakeFromTheDepotWithChunks_1", "popped 1; list 0: 1+0"},
    {"TakeFromTheDepotWithChunks_2", "popped 1; list 0: 1+0"},
    {"TakePastThePageset_4", "direct takes 1, holds 1"},
    {"TakePastThePageset_10", "direct takes 1, holds 1"},
    {"TakeOfOrderOnePastThePageset_fixed", "direct takes 1, holds 1"},
    {"ConvertALargestBlock", "holds 1, refilled 2; list 1: 1"},
    {"ConvertAPageBlock", "holds 1, refilled 2; list 1: 1"},
    {"TakeOfTheOtherType", "holds 1, refilled 2; list 1: 1"},
    {"FetchWhatOthersHold",
     "drained 4, holds 3, popped 1, refilled 4; list 2: 1"},
    {"TakeAddsASection", "direct takes 1, holds 2, pages managed 600"},
    {"TakeFromANewSection", "holds 1, refilled 1; list 0: 0"},
    {"TakeCarvesASection", "holds 1, refilled 1; list 0: 0"},
    {"AllocateBulk", "holds 2, refilled 8; list 0: 2"},
    {"GiveToTheLoadedChunk", "; list 0: 1"},
    {"GiveOfOrderThree", "; list 6: 2"},
    {"GiveOfASiblingsBlock", "; list 0: 1"},
    {"GiveMakesASpare", "; list 0: 1+64"},
    {"GiveRotatesTheSpareIn", "; list 0: 1+64"},
    {"GivePushesTheSpareDown", "; list 0: 1+64 and 1"},
    {"FlushToTheZone_fixed", "flushed 3, holds 1; list 0: 5"},
    {"FlushMergesAllOrders_fixed", "flushed 1, holds 1"},
    {"FlushToTheZone_watermark", "flushed 3, holds 1; list 0: 5"},
    {"FlushMergesAllOrders_watermark", "flushed 1, holds 1"},
    {"FlushToTheZone_adaptive", "flushed 3, holds 1; list 0: 5"},
    {"FlushMergesAllOrders_adaptive", "flushed 1, holds 1"},
    {"FlushToTheZone_memtuned", "flushed 4, holds 1; list 0: 4"},
    {"FlushMergesAllOrders_memtuned", "flushed 2, holds 1; list 0: 0"},
    {"FlushInSeveralHolds", "flushed 5, holds 2; list 0: 3"},
    {"ParkInTheDepot_256", "parked 2; list 0: 8+64"},
    {"ParkInTheDepot_64", "flushed 64, holds 1, parked 1; list 0: 8+64"},
    {"FreeHighFlush_watermark", "flushed free-high 8, holds 1; list 2: 0"},
    {"FreeHighFlush_adaptive", "flushed free-high 8, holds 1; list 2: 0"},
    {"FreeHighFlush_memtuned", "flushed free-high 120, holds 1; list 2: 20"},
    {"GivePastThePageset_4", "direct gives 1, holds 1"},
    {"GivePastThePageset_10", "direct gives 1, holds 1"},
    {"GiveOfARightHalfPastThePageset", "direct gives 1, holds 1"},
    {"GiveOfOrderOnePastThePageset_fixed", "direct gives 1, holds 1"},
    {"GiveOfAHugeBlock", "flushed 512, holds 1"},
    {"GiveAfterThePolicyChanged", "drained 6, holds 2, refilled 2; list 0: 2"},
    {"FreeBulk", "flushed 8, holds 2; list 0: 4"},
    {"Offer", ""},
    {"Revoke", ""},
    {"Adopt", ""},
    {"FreeAdopted", "; list 0: 1"},
    {"FreeOfAnOffer", "; list 0: 2"},
    {"SetLabel", ""},
    {"DrainAPageset", "drained 137, holds 4"},
    {"DecayAPageset", "decayed 22, holds 1"},
    {"DrainASmallPageset", "drained 1, holds 1"},
    {"DrainADepot", "holds 3, popped 3"},
    {"DepotPopAndPush", "parked 1, popped 1"},
    {"TakeAndGiveAnEmptyChunk", ""},
    {"Recalculate", ""},
    {"SetMemoryPolicy", ""},
    {"WriteAnothersMems", ""},
    {"AttachAProcess", ""},
    {"TakeAndReleaseAThreadSlot", ""},
    {"ReleaseAProcessSlot", ""},
    {"TakeWithinALimit", "holds 1, refilled 8; list 4: 1"},
    {"LimitAnotherProcess", ""},
    {"InitialiseAPartOfASection", "holds 1, pages managed 48"},
    {"InitialiseAWholeSection", "holds 1, pages managed 32768"},
    {"ReapBlocks", "holds 1"},
    {"ReapManyBlocks", "holds 2"},
    {"ReapOneWithNothing", ""},
};

}  // namespace

std::string_view EffectOfCrashCase(std::string_view name) {
  if (name.ends_with(kTrylockSuffix)) {
    name.remove_suffix(kTrylockSuffix.size());
  }
  const auto* it =
      std::find_if(std::begin(kEffects), std::end(kEffects),
                   [&](const Effect& effect) { return effect.name == name; });
  return it == std::end(kEffects) ? "no entry in kEffects" : it->effect;
}

}  // namespace memtuned
