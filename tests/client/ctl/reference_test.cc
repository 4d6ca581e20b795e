// SPDX-License-Identifier: Apache-2.0
// The generated tables, and that client/ctl/README.md shows them as they are.
#include "client/ctl/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "client/ctl/command_table.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/help.h"
#include "core/stats.h"
#include "core/tunables.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadSource(const std::string& path) {
  const char* root = std::getenv("MEMTUNED_SOURCE_DIR");
  EXPECT_NE(root, nullptr);
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ReferenceTest, HasARowForEachEntryOfEachTable) {
  const std::string commands = CommandReference();
  for (const CommandDef& command : CommandTable()) {
    EXPECT_EQ(
        commands.find("| `" + std::string(command.name)) != std::string::npos,
        !command.hidden)
        << command.name;
  }
  for (const TunableDef& def : TunableTable()) {
    EXPECT_THAT(TunableReference(),
                HasSubstr("| `" + std::string(def.name) + "` |"));
  }
  for (const StatDef& def : StatTable()) {
    EXPECT_THAT(MetricReference(),
                HasSubstr("| `" + std::string(def.name) + "` |"));
  }
}

TEST(ReferenceTest, EveryRowHasAsManyCellsAsTheHead) {
  for (const std::string& table :
       {CommandReference(), OptionReference(), ExitCodeReference(),
        TunableReference(), MetricReference()}) {
    std::istringstream lines(table);
    int cells = 0;
    for (std::string line; std::getline(lines, line);) {
      int bars = 0;
      for (size_t i = 0; i < line.size(); ++i) {
        bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
      }
      if (cells == 0) cells = bars;
      EXPECT_EQ(bars, cells) << line;
    }
  }
}

TEST(ReferenceTest, ReadmeShowsTheTablesAsTheyAre) {
  const std::string readme = ReadSource("client/ctl/README.md");

  EXPECT_THAT(readme, HasSubstr(CommandReference()));
  EXPECT_THAT(readme, HasSubstr(OptionReference()));
  EXPECT_THAT(readme, HasSubstr(ExitCodeReference()));
}

TEST(HelpTest, TellsVerbsOptionsAndExitCodes) {
  const std::string help = GeneralHelp();

  for (const CommandDef& command : CommandTable()) {
    if (command.hidden) continue;
    EXPECT_THAT(help, HasSubstr(command.name));
  }
  for (const OptionDef& option : GlobalOptions()) {
    EXPECT_THAT(help, HasSubstr(option.name));
  }
  for (const ExitCodeDef& def : ExitCodeTable()) {
    EXPECT_THAT(help, HasSubstr(std::to_string(static_cast<int>(def.code)) +
                                "  " + def.name));
  }
}

TEST(HelpTest, KeepsTo80ColumnsOutsideExamples) {
  for (const CommandDef& command : CommandTable()) {
    std::istringstream lines(CommandHelp(command));
    for (std::string line; std::getline(lines, line) && line != "Examples";) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

TEST(HelpTest, SaysWhichVerbsNeedASubject) {
  EXPECT_THAT(CommandHelp(*FindCommand("drain")),
              HasSubstr("--subject unless"));
  EXPECT_THAT(CommandHelp(*FindCommand("zones")),
              Not(HasSubstr("--subject unless")));
}

}  // namespace
}  // namespace memtuned::ctl
