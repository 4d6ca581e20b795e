// SPDX-License-Identifier: Apache-2.0
// Messages as JSON and YAML.
#include "client/ctl/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memtuned/v1/tuning.pb.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace memtuned::ctl {
namespace {

v1::Change SampleChange() {
  v1::Change change;
  change.set_generation(12);
  change.set_reason("yes");
  change.set_etag("12-ab: \"x\"\n#");
  v1::Effect& effect = *change.add_effects();
  effect.set_where("nodes/0/zones/Normal");
  effect.set_after(9007199254740993);
  return change;
}

TEST(OutputTest, JsonKeepsFieldNamesAndZeroes) {
  const auto json = nlohmann::json::parse(ToJson(SampleChange(), true));

  EXPECT_EQ(json.at("generation"), "12");
  EXPECT_EQ(json.at("request_id"), "");
  EXPECT_EQ(json.at("effects").at(0).at("before"), "0");
  EXPECT_EQ(json.at("kind"), "CHANGE_KIND_UNSPECIFIED");
}

TEST(OutputTest, JsonLinesHaveNoLineBreaks) {
  EXPECT_THAT(ToJson(SampleChange(), false),
              ::testing::Not(::testing::HasSubstr("\n")));
}

TEST(OutputTest, YamlReadsBackAsTheSame) {
  const std::string yaml = JsonToYaml(ToJson(SampleChange(), true));
  const YAML::Node node = YAML::Load(yaml);

  EXPECT_EQ(node["etag"].as<std::string>(), "12-ab: \"x\"\n#");
  EXPECT_EQ(node["effects"][0]["after"].as<std::string>(), "9007199254740993");
  EXPECT_EQ(node["risks"].size(), 0u);
  EXPECT_THAT(yaml, ::testing::HasSubstr("generation: \"12\"\n"));
}

TEST(OutputTest, YamlKeepsStringsThatLookLikeSomethingElse) {
  const YAML::Node node = YAML::Load(JsonToYaml(
      R"({"a": "true", "b": "12", "c": "", "d": "null", "e": 12, "f": true,
          "g": "plain words", "h": "- x", "i": {}, "j": null, "k": 1.5})"));

  // yaml-cpp tags a quoted scalar "!" and leaves "?" on a plain one.
  for (const char* key : {"a", "b", "c", "d", "h"}) {
    EXPECT_EQ(node[key].Tag(), "!") << key;
  }
  for (const char* key : {"e", "f", "g", "k"}) {
    EXPECT_EQ(node[key].Tag(), "?") << key;
  }
  EXPECT_EQ(node["g"].as<std::string>(), "plain words");
  EXPECT_TRUE(node["i"].IsMap());
  EXPECT_TRUE(node["j"].IsNull());
}

TEST(OutputTest, EachYamlDocumentStartsWithDashes) {
  std::ostringstream out;
  PrintDocument(out, R"({"a": 1})", true);
  PrintDocument(out, R"({"a": 2})", true);

  EXPECT_EQ(out.str(), "---\na: 1\n---\na: 2\n");
  EXPECT_EQ(YAML::LoadAll(out.str()).size(), 2u);
}

}  // namespace
}  // namespace memtuned::ctl
