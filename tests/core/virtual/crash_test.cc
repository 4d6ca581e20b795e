// SPDX-License-Identifier: Apache-2.0
// A process is killed at every store of every operation: alone, in every
// schedule with a neighbour within a bound, and once more while it is taken
// over from. Others go on, and the pool is whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "tests/core/virtual/crash_cases.h"

namespace memtuned {
namespace {

// gtest's names are letters, digits and underscores.
std::string TestNameOf(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

template <typename Parameter>
class CrashTestOf : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  // Of builds that are slow, every few stores will do.
  static uint64_t Step() { return static_cast<uint64_t>(1 / RunScale()); }

  static uint64_t StepFromEnvironment(uint64_t otherwise) {
    return NumberFromEnvironment("MEMTUNED_CRASH_STEP", otherwise);
  }

  static void ExpectNoFailure(const CrashCase& one, const CrashReport& report) {
    std::printf("  %s%s%s: dies at each of %lu stores, %lu trials\n",
                one.name.c_str(), report.effect.empty() ? "" : ", ",
                report.effect.c_str(), report.points, report.trials);
    EXPECT_EQ(report.failures, 0u);
    for (const auto& [kind, failure] : report.first_failures) {
      ADD_FAILURE() << failure;
    }
  }
};

using CrashTest = CrashTestOf<size_t>;

TEST_P(CrashTest, AtEveryStore) {
  const CrashCase& one = AllCrashCases()[GetParam()];

  const CrashReport report = CrashRun(one).EveryStore(Step());

  ExpectNoFailure(one, report);
  EXPECT_EQ(report.effect, EffectOfCrashCase(one.name));
  EXPECT_GE(report.points, 2 / Step());
}

// For hours, by hand: --gtest_also_run_disabled_tests.
TEST_P(CrashTest, DISABLED_AnyTwoDeaths) {
  const CrashCase& one = AllCrashCases()[GetParam()];

  ExpectNoFailure(one, CrashRun(one).TwoDeaths(StepFromEnvironment(1)));
}
TEST_P(CrashTest, DISABLED_AnySchedule) {
  const CrashCase& one = AllCrashCases()[GetParam()];

  for (uint32_t cpus : {1, 2}) {
    ExpectNoFailure(
        one, CrashRun(one).EverySchedule(cpus, 1, StepFromEnvironment(1)));
  }
}

INSTANTIATE_TEST_SUITE_P(, CrashTest,
                         testing::Range(size_t{0}, AllCrashCases().size()),
                         [](const auto& info) {
                           return TestNameOf(AllCrashCases()[info.param].name);
                         });

struct Exploring {
  const char* name;
  uint32_t cpus;
  int preemptions;
  uint64_t trials;  // at least
};

void PrintTo(const Exploring& how, std::ostream* out) {
  *out << how.name << ", " << how.cpus << " CPUs, " << how.preemptions
       << " preemptions";
}

// On two CPUs beside each other, on one preempting each other.
constexpr Exploring kExplored[] = {
    {"TakeFromTheLoadedChunk", 2, 1, 100},
    {"TakeFromTheLoadedChunk", 1, 1, 100},
    {"GiveToTheLoadedChunk", 1, 1, 100},
    {"GiveOfASiblingsBlock", 1, 1, 100},
    {"DrainASmallPageset", 2, 1, 100},
    {"DrainASmallPageset_trylock", 2, 1, 100},
    {"DepotPopAndPush", 2, 2, 100},
    {"TakeAndGiveAnEmptyChunk", 2, 1, 100},
    {"Offer", 2, 3, 50},
    {"Revoke", 2, 3, 20},
    {"Adopt", 2, 3, 20},
    {"FreeAdopted", 2, 2, 100},
    {"FreeOfAnOffer", 2, 2, 100},
    {"WriteAnothersMems", 2, 1, 100},
    {"InitialiseAPartOfASection", 2, 1, 100},
    {"InitialiseAWholeSection", 2, 1, 100},
    {"ReapBlocks", 2, 1, 100},
    {"TakeAndReleaseAThreadSlot", 2, 1, 100},
};

class CrashExploredTest : public CrashTestOf<Exploring> {};

TEST_P(CrashExploredTest, InEverySchedule) {
  const Exploring& how = GetParam();
  const CrashCase& one = CrashCaseNamed(how.name);

  const CrashReport report =
      CrashRun(one).EverySchedule(how.cpus, how.preemptions, Step());

  ExpectNoFailure(one, report);
  EXPECT_GE(report.trials, how.trials / Step());
}

INSTANTIATE_TEST_SUITE_P(, CrashExploredTest, testing::ValuesIn(kExplored),
                         [](const auto& info) {
                           return TestNameOf(info.param.name) + "_on_" +
                                  std::to_string(info.param.cpus);
                         });

struct Twice {
  const char* name;
  // Of the first death; of the second one each store is tried.
  uint64_t step;
};

void PrintTo(const Twice& how, std::ostream* out) { *out << how.name; }

constexpr Twice kTwice[] = {
    {"TakeFromTheLoadedChunk", 1},
    {"GiveToTheLoadedChunk", 1},
    {"RefillTakesFragments_memtuned", 5},
    {"FlushToTheZone_adaptive", 5},
    {"DrainASmallPageset", 5},
    {"DepotPopAndPush", 1},
    {"TakeAndGiveAnEmptyChunk", 2},
    {"FreeAdopted", 3},
    {"Recalculate", 2},
    {"InitialiseAWholeSection", 3},
};

class CrashTwiceTest : public CrashTestOf<Twice> {};

TEST_P(CrashTwiceTest, WhoeverTakesOverDiesToo) {
  const CrashCase& one = CrashCaseNamed(GetParam().name);
  const uint64_t step =
      NumberFromEnvironment("MEMTUNED_CRASH_STEP", GetParam().step * Step());

  const CrashReport report = CrashRun(one).TwoDeaths(step);

  ExpectNoFailure(one, report);
  EXPECT_GE(report.trials, 100u);
}

INSTANTIATE_TEST_SUITE_P(, CrashTwiceTest, testing::ValuesIn(kTwice),
                         [](const auto& info) {
                           return TestNameOf(info.param.name);
                         });

}  // namespace
}  // namespace memtuned
