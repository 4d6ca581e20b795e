// SPDX-License-Identifier: Apache-2.0
// What a child process may do to its parent: nothing.
#include "daemon/host/isolated_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace memtuned {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kLong(20000);

IsolatedResult Call(const std::function<std::string()>& work,
                    std::chrono::milliseconds deadline = kLong) {
  absl::StatusOr<IsolatedResult> result = CallIsolated(work, deadline);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : IsolatedResult();
}

TEST(IsolatedCallTest, BringsTheResultBack) {
  EXPECT_EQ(Call([] { return std::string("a\0b", 3); }).output,
            std::string("a\0b", 3));
  EXPECT_EQ(Call([] { return std::string(); }).output, "");
  EXPECT_EQ(Call([] { return std::string(1 << 20, 'x'); }).output.size(),
            size_t{1} << 20);
}

TEST(IsolatedCallTest, KeepsWhatIsWrittenToStderr) {
  const IsolatedResult result = Call([] {
    std::fputs("hwloc is unhappy\n", stderr);
    return std::string("done");
  });

  EXPECT_EQ(result.diagnostics, "hwloc is unhappy\n");
  EXPECT_EQ(result.output, "done");
}

TEST(IsolatedCallTest, BoundsWhatIsKeptOfStderr) {
  const IsolatedResult result = Call([] {
    for (int i = 0; i < 20000; ++i) std::fputs("again and again\n", stderr);
    return std::string("done");
  });

  EXPECT_EQ(result.diagnostics.size(), 4096u);
  EXPECT_EQ(result.output, "done");
}

TEST(IsolatedCallTest, ReportsACrash) {
  const IsolatedResult result = Call([]() -> std::string {
    std::raise(SIGSEGV);
    return "not reached";
  });

  EXPECT_EQ(result.failure, "crashed (signal 11)");
  EXPECT_EQ(result.output, "");
}

TEST(IsolatedCallTest, ReportsAnAssertionWithItsText) {
  const IsolatedResult result = Call([]() -> std::string {
    std::fputs("Assertion failed\n", stderr);
    std::abort();
  });

  EXPECT_EQ(result.failure, "crashed (signal 6)");
  EXPECT_THAT(result.diagnostics, HasSubstr("Assertion failed"));
}

TEST(IsolatedCallTest, ReportsAnEarlyExit) {
  EXPECT_EQ(Call([]() -> std::string { _exit(7); }).failure,
            "failed (exit code 7)");
  EXPECT_EQ(Call([]() -> std::string { _exit(0); }).failure,
            "gave no whole result");
}

TEST(IsolatedCallTest, EndsAChildThatHangs) {
  const auto start = std::chrono::steady_clock::now();

  const IsolatedResult result = Call(
      []() -> std::string {
        while (true) pause();
      },
      std::chrono::milliseconds(100));

  EXPECT_EQ(result.failure, "took over 100 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(IsolatedCallTest, LeavesTheEnvironmentAlone) {
  Call([] {
    setenv("MEMTUNED_TEST_ISOLATED", "1", 1);
    return std::string();
  });

  EXPECT_EQ(std::getenv("MEMTUNED_TEST_ISOLATED"), nullptr);
}

TEST(IsolatedCallTest, LeavesNoChildBehind) {
  Call([] { return std::string(); });
  Call([]() -> std::string { std::abort(); });

  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace memtuned
