// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/steal_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "core/base/env.h"
#include "tests/torture/machine.h"

namespace memtuned::torture {
namespace {

TEST(StealLogTest, TellsWhatTheCpuLostThatLostMost) {
  const auto log = std::make_unique<StealLog>();
  const uint64_t start = env::NowNs() - kSecond;
  log->Add(start, {100, 50});
  log->Add(start + 10 * kMillisecond, {100, 50});
  log->Add(start + 20 * kMillisecond, {110, 80});
  log->Add(start + 30 * kMillisecond, {120, 80});
  log->Add(start + 200 * kMillisecond, {500, 500});

  EXPECT_EQ(log->StolenNs(start + 12 * kMillisecond, start + 18 * kMillisecond),
            30 * kMillisecond);
  EXPECT_EQ(log->StolenNs(start + 20 * kMillisecond, start + 20 * kMillisecond),
            10 * kMillisecond);
  EXPECT_EQ(log->StolenNs(start, start), 0u);
}

TEST(StealLogTest, OfBeforeItBeganNothingIsKnown) {
  const auto log = std::make_unique<StealLog>();
  const uint64_t now = env::NowNs();
  log->Add(now + kSecond, {100});

  EXPECT_EQ(log->StolenNs(now, now), 0u);
}

TEST(StealLogTest, TheCpusAddUpToTheMachine) {
  StealLog::PerCpuMs ms{};
  const uint64_t before = StolenMs();
  StolenMsPerCpu(ms);
  const uint64_t after = StolenMs();

  const uint64_t sum = std::accumulate(ms.begin(), ms.end(), uint64_t{0});
  // A tick each is rounded away.
  EXPECT_LE(sum, after);
  EXPECT_GE(sum + 10 * ms.size(), before);
}

}  // namespace
}  // namespace memtuned::torture
