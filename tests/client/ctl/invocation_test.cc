// SPDX-License-Identifier: Apache-2.0
// Command lines: what is understood, and what the refusal says.
#include "client/ctl/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace memtuned::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Invocation Parsed(const std::vector<std::string>& words) {
  auto invocation = ParseCommandLine(words);
  EXPECT_TRUE(invocation.ok()) << invocation.status().message();
  return invocation.ok() ? *invocation : Invocation();
}

std::string Refusal(const std::vector<std::string>& words) {
  const auto invocation = ParseCommandLine(words);
  EXPECT_FALSE(invocation.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(invocation.status()));
  return std::string(invocation.status().message());
}

TEST(InvocationTest, TakesGlobalOptionsBeforeAndAfterTheVerb) {
  const Invocation before = Parsed({"-o", "json", "zones"});
  const Invocation after = Parsed({"zones", "--output=json"});

  EXPECT_STREQ(before.command->name, "zones");
  EXPECT_EQ(before.output(), OutputFormat::kJson);
  EXPECT_EQ(after.output(), OutputFormat::kJson);
}

TEST(InvocationTest, KnowsVerbsByTheirAlias) {
  EXPECT_STREQ(Parsed({"recalc", "--dry-run"}).command->name, "recalculate");
}

TEST(InvocationTest, CollectsArguments) {
  const Invocation set =
      Parsed({"set", "a=1", "b=-2", "--reason", "two words", "c=3"});

  EXPECT_THAT(set.arguments, ElementsAre("a=1", "b=-2", "c=3"));
  EXPECT_EQ(set.Text("--reason"), "two words");
}

TEST(InvocationTest, TakesNamesOfVerbsAsArguments) {
  EXPECT_THAT(Parsed({"help", "set"}).arguments, ElementsAre("set"));
  EXPECT_THAT(Parsed({"stats", "zones", "watch"}).arguments,
              ElementsAre("zones", "watch"));
}

TEST(InvocationTest, ExpandsNumbersAndLists) {
  const Invocation drain =
      Parsed({"drain", "--cpu", "4-6,1", "--cpu", "1,9", "--zone",
              "Normal,Movable", "--zone", "Normal"});

  EXPECT_THAT(drain.Numbers("--cpu"), ElementsAre(1, 4, 5, 6, 9));
  EXPECT_THAT(drain.List("--zone"), ElementsAre("Normal", "Movable"));
  EXPECT_TRUE(drain.Numbers("--node").empty());
}

TEST(InvocationTest, LastValueOfARepeatedOptionCounts) {
  EXPECT_EQ(Parsed({"-o", "json", "zones", "-o", "yaml"}).output(),
            OutputFormat::kYaml);
}

TEST(InvocationTest, HelpAndVersionReplaceTheVerb) {
  const Invocation help = Parsed({"drain", "--help", "--node", "1"});
  EXPECT_STREQ(help.command->name, "help");
  EXPECT_THAT(help.arguments, ElementsAre("drain"));

  EXPECT_STREQ(Parsed({"-h"}).command->name, "help");
  EXPECT_STREQ(Parsed({"--version"}).command->name, "version");
  EXPECT_STREQ(Parsed({"set", "-h"}).command->name, "help");
}

TEST(InvocationTest, SuggestsTheNearestVerb) {
  EXPECT_EQ(Refusal({"zonse"}), "unknown verb 'zonse'; did you mean 'zones'?");
  EXPECT_EQ(Refusal({"tun"}), "unknown verb 'tun'; did you mean 'tunables'?");
  EXPECT_EQ(Refusal({"frobnicate"}),
            "unknown verb 'frobnicate'; see 'memtunectl help'");
}

TEST(InvocationTest, HasNoVerbsOfLaterReleases) {
  for (const char* verb : {"doctor", "capture", "whatif", "freeze", "unfreeze",
                           "changes", "confirm", "rollback", "top", "fleet"}) {
    EXPECT_THAT(Refusal({verb}), HasSubstr("unknown verb")) << verb;
  }
}

TEST(InvocationTest, SuggestsTheNearestOption) {
  EXPECT_EQ(Refusal({"zones", "--nod", "1"}),
            "unknown option of zones '--nod'; did you mean '--node'?");
  EXPECT_THAT(Refusal({"--outptu=json", "zones"}),
              HasSubstr("did you mean '--output'?"));
  EXPECT_THAT(Refusal({"topology", "--dry-run"}),
              HasSubstr("unknown option of topology '--dry-run'"));
}

TEST(InvocationTest, NamesValueAndAllowedRange) {
  EXPECT_EQ(Refusal({"-o", "xml", "zones"}),
            "--output is 'xml'; allowed table, wide, json, yaml");
  EXPECT_EQ(Refusal({"drain", "--cpu", "4096"}),
            "--cpu is '4096'; allowed whole numbers 0 to 4095, as in 0 or "
            "0,2-3");
  EXPECT_EQ(Refusal({"--timeout", "0s", "zones"}),
            "--timeout is '0s'; allowed 0.001 to 86400 seconds, as in 10s, "
            "300ms or 2m");
  EXPECT_EQ(Refusal({"zones", "--zone", "normal"}),
            "--zone is 'normal'; allowed DMA, DMA32, Normal, Movable, Device");
  EXPECT_EQ(Refusal({"-s", "pools/", "zones"}),
            "--subject is 'pools/'; allowed host or pools/NAME");
  EXPECT_EQ(Refusal({"-s", "pools/a/b", "zones"}),
            "--subject is 'pools/a/b'; allowed host or pools/NAME");
  EXPECT_EQ(Refusal({"watch", "-n", "1-2"}),
            "--count is '1-2'; allowed a whole number 1 to 1000000000");
  EXPECT_EQ(Refusal({"completion", "csh"}),
            "SHELL is 'csh'; allowed bash, zsh, fish");
}

TEST(InvocationTest, RefusesWrongNumbersOfArguments) {
  EXPECT_EQ(Refusal({}), "a verb is missing; see 'memtunectl help'");
  EXPECT_THAT(Refusal({"set"}), HasSubstr("set needs TUNABLE=VALUE..."));
  EXPECT_THAT(Refusal({"zones", "x"}), HasSubstr("unexpected argument 'x'"));
  EXPECT_THAT(Refusal({"tunables", "a", "b"}),
              HasSubstr("unexpected argument 'b'"));
  EXPECT_EQ(Refusal({"zones", "--node"}), "--node needs a value");
}

TEST(InvocationTest, ParsesNumberLists) {
  EXPECT_THAT(*ParseNumbers("0", 0, 9), ElementsAre(0));
  EXPECT_THAT(*ParseNumbers("3-5,9", 0, 9), ElementsAre(3, 4, 5, 9));
  for (const char* bad : {"", "-1", "1-", "5-3", "10", "a", "1,,2", "1 2",
                          "0x1", "99999999999999999999", "1-2-3"}) {
    EXPECT_EQ(ParseNumbers(bad, 0, 9), std::nullopt) << bad;
  }
}

TEST(InvocationTest, GuessesTheOutputOfBrokenCommandLines) {
  EXPECT_EQ(GuessOutput({"zonse", "-o", "json"}), OutputFormat::kJson);
  EXPECT_EQ(GuessOutput({"--output=yaml", "x"}), OutputFormat::kYaml);
  EXPECT_EQ(GuessOutput({"-ojson"}), OutputFormat::kJson);
  EXPECT_EQ(GuessOutput({"-o"}), OutputFormat::kTable);
}

TEST(CommandTableTest, NamesAreUniqueAndRowsComplete) {
  std::set<std::string> names;
  for (const CommandDef& command : CommandTable()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    if (*command.alias != '\0') {
      EXPECT_TRUE(names.insert(command.alias).second) << command.alias;
    }
    EXPECT_NE(command.run, nullptr) << command.name;
    EXPECT_NE(*command.help, '\0') << command.name;
    EXPECT_TRUE(command.hidden || *command.examples != '\0') << command.name;
    std::set<std::string> options;
    for (const OptionDef& option : command.options) {
      EXPECT_TRUE(options.insert(option.name).second) << option.name;
      EXPECT_EQ(FindOption(nullptr, option.name), nullptr)
          << option.name << " hides an option of every verb";
    }
  }
}

TEST(CommandTableTest, ExamplesOfTheHelpParse) {
  for (const CommandDef& command : CommandTable()) {
    std::string line;
    for (const char* at = command.examples; *at != '\0'; ++at) line += *at;
    if (line.find('<') != std::string::npos ||
        line.find('|') != std::string::npos) {
      continue;  // shell syntax around it
    }
    std::vector<std::string> words;
    std::string word;
    bool quoted = false;
    auto end_line = [&] {
      if (!word.empty()) words.push_back(word);
      word.clear();
      if (words.empty()) return;
      words.erase(words.begin());
      const auto invocation = ParseCommandLine(words);
      EXPECT_TRUE(invocation.ok()) << invocation.status().message();
      words.clear();
    };
    for (const char byte : line) {
      if (byte == '\'') {
        quoted = !quoted;
      } else if (byte == '\n') {
        end_line();
      } else if (byte == ' ' && !quoted) {
        if (!word.empty()) words.push_back(word);
        word.clear();
      } else {
        word += byte;
      }
    }
    end_line();
  }
}

}  // namespace
}  // namespace memtuned::ctl
