// SPDX-License-Identifier: Apache-2.0
// The completion scripts in real shells, asking the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/client/ctl/fake_daemon.h"
#include "tests/client/ctl/run_binary.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool Installed(const std::string& program) {
  return RunProgram({"/bin/sh", "-c", "command -v " + program}).exit == 0;
}

// What bash offers for `line`, a candidate a line.
std::string BashOffers(const std::string& line,
                       const std::string& prelude = "") {
  const std::string script =
      prelude + "\nsource <('" + BinaryPath() + "' completion bash)\n" +
      "COMP_LINE=\"$1\" COMP_POINT=${#1}\n_memtunectl\n" +
      "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  return RunProgram({"/bin/bash", "-c", script, "bash", line}).out;
}

std::string Line(const std::string& words) { return BinaryPath() + words; }

TEST(ShellTest, ScriptsHaveValidSyntax) {
  const TempDir dir;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (!Installed(shell)) continue;
    const RunResult script = RunCtl({"completion", shell});
    ASSERT_EQ(script.exit, 0);
    std::ofstream(dir.File(shell)) << script.out;

    const RunResult check = RunProgram({shell, "-n", dir.File(shell)});

    EXPECT_EQ(check.exit, 0) << shell << ": " << check.err;
    EXPECT_EQ(check.err, "");
  }
}

TEST(ShellTest, BashOffersVerbs) {
  EXPECT_EQ(BashOffers(Line(" zo")), "zones\n");
  EXPECT_THAT(BashOffers(Line(" ")), HasSubstr("pagesets\n"));
  EXPECT_THAT(BashOffers(Line(" ")), Not(HasSubstr("reference")));
}

TEST(ShellTest, BashOffersOptionsAndTheirValues) {
  EXPECT_EQ(BashOffers(Line(" drain --dr")), "--dry-run\n");
  EXPECT_EQ(BashOffers(Line(" zones -o y")), "yaml\n");
  EXPECT_EQ(BashOffers(Line(" zones --output=y")), "yaml\n");
}

TEST(ShellTest, BashOffersTunablesAndTheirValues) {
  EXPECT_EQ(BashOffers(Line(" set pageset.ba")), "pageset.batch_factor=\n");
  EXPECT_EQ(BashOffers(Line(" set pageset.policy=f")), "fixed\n");
  EXPECT_EQ(BashOffers(Line(" set pageset.policy=f"), "COMP_WORDBREAKS=' '"),
            "pageset.policy=fixed\n");
}

TEST(ShellTest, BashOffersSubjectsOfTheDaemon) {
  FakeDaemon daemon;
  daemon.state().subjects = {"host", "pools/a", "pools/b"};

  EXPECT_EQ(BashOffers(Line(" -t " + daemon.target() + " zones -s po")),
            "pools/a\npools/b\n");
}

TEST(ShellTest, SlowOrMissingDaemonsAreNotWaitedFor) {
  FakeDaemon daemon;
  daemon.state().delay = std::chrono::seconds(5);
  const auto start = std::chrono::steady_clock::now();

  EXPECT_EQ(RunCtl({"complete", "-t", daemon.target(), "-s", ""}).out, "");
  EXPECT_EQ(RunCtl({"complete", "-t", "/nowhere", "-s", ""}).out, "");

  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

TEST(ShellTest, FishOffersVerbsAndAssignments) {
  if (!Installed("fish")) GTEST_SKIP() << "fish is not installed";
  auto offers = [](const std::string& line) {
    return RunProgram({"fish", "--no-config", "-c",
                       "function memtunectl; '" + BinaryPath() +
                           "' $argv; end; '" + BinaryPath() +
                           "' completion fish | source; complete -C '" + line +
                           "'"})
        .out;
  };

  EXPECT_THAT(offers("memtunectl zo"), HasSubstr("zones\t"));
  EXPECT_THAT(offers("memtunectl set pageset.policy=f"),
              HasSubstr("pageset.policy=fixed"));
}

TEST(ShellTest, ZshScriptLoads) {
  if (!Installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  const RunResult result = RunProgram(
      {"zsh", "-f", "-c",
       "autoload -Uz compinit && compinit -u -D; source <('" + BinaryPath() +
           "' completion zsh) && print $_comps[memtunectl]"});

  EXPECT_EQ(result.out, "_memtunectl\n") << result.err;
}

}  // namespace
}  // namespace memtuned::ctl
