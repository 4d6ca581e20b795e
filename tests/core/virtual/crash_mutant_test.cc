// SPDX-License-Identifier: Apache-2.0
// A core with one mistake in it: the deaths that this mistake is about must be
// found to leave a broken pool behind. One binary a mistake (CMakeLists.txt).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_split.h"
#include "tests/core/virtual/crash_cases.h"

namespace memtuned {

// Names of cases, with commas; "twice:" or "explored:" before one is another
// way to run it.
extern const char* const kMutantCases;

namespace {

// A broken pool may abort, crash or run in circles: each is looked at in a
// process of its own.
class CrashMutantTest : public testing::Test {
 protected:
  static constexpr int kSound = 0, kBroken = 1;
  static constexpr unsigned kMostSeconds = 60;

  static int Run(const std::string& how, const std::string& name) {
    CrashRun run(CrashCaseNamed(name));
    const CrashReport report = how == "twice"      ? run.TwoDeaths()
                               : how == "explored" ? run.EverySchedule(2, 1)
                                                   : run.EveryStore();
    std::printf("  %lu of %lu trials fail\n", report.failures, report.trials);
    for (const auto& [kind, failure] : report.first_failures) {
      std::printf("  %s\n", failure.c_str());
    }
    std::fflush(stdout);
    return report.failures == 0 ? kSound : kBroken;
  }

  // Returns: whether somebody found fault.
  static bool FindsFault(const std::string& how, const std::string& name) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(kMostSeconds);
      _exit(Run(how, name));
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      std::printf("  %s: signal %d\n", name.c_str(), WTERMSIG(status));
      return true;
    }
    return WEXITSTATUS(status) != kSound;
  }
};

TEST_F(CrashMutantTest, IsFound) {
  if (!env::VirtualMachine::Supported()) {
    GTEST_SKIP() << "fibers and sanitizers do not mix";
  }
  const std::vector<std::string> cases = absl::StrSplit(kMutantCases, ',');
  for (const std::string& one : cases) {
    const size_t colon = one.find(':');
    const bool alone = colon == std::string::npos;
    const std::string how = alone ? "" : one.substr(0, colon);
    const std::string name = alone ? one : one.substr(colon + 1);

    EXPECT_TRUE(FindsFault(how, name)) << one << " is sound";
  }
}

}  // namespace
}  // namespace memtuned
