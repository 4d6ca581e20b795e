// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/call_timer.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/env.h"
#include "tests/torture/durations.h"
#include "tests/torture/machine.h"

namespace memtuned::torture {
namespace {

constexpr uint64_t kLimit = 20 * kMillisecond;

void Sleep(uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

void PinToCpu(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<size_t>(cpu), &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

class CallTimerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TellsRunQueueDelay()) GTEST_SKIP() << "no schedstat here";
  }

  Board& board_ = *Board::Create();
  ThreadLine& line_ = board_.workers[0].threads[0];
};

TEST_F(CallTimerTest, ReportsACallThatWaitsTooLong) {
  CallTimer timer(board_, line_, 0, kLimit);
  timer.Begin();
  EXPECT_NE(line_.call_start_ns, 0u);
  Sleep(2 * kLimit);
  timer.End("Nap");

  EXPECT_EQ(line_.call_start_ns, 0u);
  EXPECT_GE(line_.longest_wait_ns, 2 * kLimit);
  EXPECT_TRUE(board_.Has(Fault::kWait));
}

TEST_F(CallTimerTest, SubtractsTheTimeOnTheRunQueue) {
  std::atomic<bool> done{false};
  const auto cpu = static_cast<int>(env::CurrentCpu());
  std::vector<std::thread> rivals;
  for (int i = 0; i < 3; ++i) {
    rivals.emplace_back([&] {
      PinToCpu(cpu);
      while (!done) continue;
    });
  }

  std::thread([&] {
    PinToCpu(cpu);
    Sleep(10 * kMillisecond);  // the rivals are there by now
    CallTimer timer(board_, line_, 0, ~uint64_t{0});
    timer.Begin();
    // What a quarter of a CPU is enough for.
    const uint64_t start = env::NowNs();
    while (env::NowNs() - start < 200 * kMillisecond) continue;
    timer.End("Spin");
  }).join();
  done = true;
  for (std::thread& rival : rivals) rival.join();

  EXPECT_GE(line_.longest_call_ns, 200 * kMillisecond);
  EXPECT_GT(line_.longest_wait_ns, 0u);
  EXPECT_LT(line_.longest_wait_ns, 150 * kMillisecond);
}

TEST_F(CallTimerTest, SubtractsTheTimeInWhichAnotherWasStopped) {
  CallTimer timer(board_, line_, 0, kLimit);
  board_.BeginStop(1, env::NowNs());
  timer.Begin();
  Sleep(2 * kLimit);
  timer.End("Nap");

  EXPECT_GE(line_.longest_behind_stopped_ns, 2 * kLimit);
  EXPECT_LT(line_.longest_wait_ns, kLimit);
  EXPECT_FALSE(board_.Has(Fault::kWait));
}

TEST_F(CallTimerTest, LeavesOutACallInWhichItWasStoppedItself) {
  CallTimer timer(board_, line_, 0, kLimit);
  board_.BeginStop(0, env::NowNs());
  timer.Begin();
  Sleep(2 * kLimit);
  timer.End("Nap");

  EXPECT_EQ(line_.longest_call_ns, 0u);
  EXPECT_FALSE(board_.Has(Fault::kWait));
}

}  // namespace
}  // namespace memtuned::torture
