// SPDX-License-Identifier: Apache-2.0
// What may be typed next.
#include "client/ctl/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/ctl/command_table.h"
#include "core/tunables.h"

namespace memtuned::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::vector<std::string> Texts(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  auto subjects = [](const std::string& target) -> std::vector<std::string> {
    if (target == "/dead") return {};
    return {"host", "pools/default"};
  };
  for (const Candidate& candidate : Complete(words, subjects)) {
    texts.push_back(candidate.text);
  }
  return texts;
}

TEST(CompletionTest, OffersEveryVerbThatIsNotHidden) {
  const auto texts = Texts({""});

  for (const CommandDef& command : CommandTable()) {
    if (command.hidden) {
      EXPECT_THAT(texts, Not(Contains(std::string(command.name))));
    } else {
      EXPECT_THAT(texts, Contains(std::string(command.name)));
    }
  }
}

TEST(CompletionTest, OffersVerbsByTheirBeginning) {
  EXPECT_THAT(Texts({"zo"}), ElementsAre("zones"));
  EXPECT_THAT(Texts({"-o", "json", "pa"}), ElementsAre("pagesets"));
}

TEST(CompletionTest, OffersTheVerbsOptionsAndThoseOfAll) {
  const auto drain = Texts({"drain", "--"});
  EXPECT_THAT(drain, Contains("--cpu"));
  EXPECT_THAT(drain, Contains("--target"));

  EXPECT_THAT(Texts({"topology", "--"}), Not(Contains("--cpu")));
}

TEST(CompletionTest, OffersValuesOfOptions) {
  EXPECT_THAT(Texts({"-o", ""}), ElementsAre("table", "wide", "json", "yaml"));
  EXPECT_THAT(Texts({"zones", "--output", "j"}), ElementsAre("json"));
  EXPECT_THAT(Texts({"zones", "--output=y"}), ElementsAre("--output=yaml"));
  EXPECT_THAT(Texts({"zones", "--zone", "DMA"}), ElementsAre("DMA", "DMA32"));
}

TEST(CompletionTest, OffersEveryTunable) {
  const auto names = Texts({"tunables", ""});
  const auto assignments = Texts({"set", "--reason", "x", ""});

  ASSERT_EQ(names.size(), static_cast<size_t>(kNumTunables));
  for (const TunableDef& def : TunableTable()) {
    EXPECT_THAT(names, Contains(std::string(def.name)));
    EXPECT_THAT(assignments, Contains(std::string(def.name) + "="));
  }
}

TEST(CompletionTest, OffersValuesOfTunables) {
  EXPECT_THAT(Texts({"set", "pageset.policy=f"}),
              ElementsAre("pageset.policy=fixed"));
  EXPECT_THAT(Texts({"set", "watermark.min_free_kbytes="}),
              ElementsAre("watermark.min_free_kbytes=auto"));
  EXPECT_THAT(Texts({"set", "a=1", "pageset.batch_factor="}),
              ElementsAre("pageset.batch_factor=1"));
}

TEST(CompletionTest, AsksTheNamedDaemonForSubjects) {
  EXPECT_THAT(Texts({"--subject", ""}), ElementsAre("host", "pools/default"));
  EXPECT_THAT(Texts({"zones", "-s", "p"}), ElementsAre("pools/default"));
  EXPECT_THAT(Texts({"--target", "/dead", "-s", ""}), ElementsAre());
  EXPECT_THAT(Texts({"--target=/dead", "-s", ""}), ElementsAre());
}

TEST(CompletionTest, OffersNothingWhereNothingMayFollow) {
  EXPECT_THAT(Texts({"topology", ""}), ElementsAre());
  EXPECT_THAT(Texts({"completion", "bash", ""}), ElementsAre());
  EXPECT_THAT(Texts({"--timeout", ""}), ElementsAre());
}

TEST(CompletionTest, HasAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(CompletionScript(shell), ::testing::HasSubstr("memtunectl"));
  }
  EXPECT_EQ(CompletionScript("csh"), "");
}

}  // namespace
}  // namespace memtuned::ctl
