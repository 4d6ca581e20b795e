// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace memtuned {
namespace {

TEST(LogTest, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(LogText("change", {{"subject", "pools/a"},
                               {"reason", "a b"},
                               {"id", ""},
                               {"forged", "x\nerror"}}),
            "change subject=pools/a reason=\"a b\" id=\"\" "
            "forged=\"x\\nerror\"");
}

TEST(LogTest, WritesOneJsonObjectALine) {
  ASSERT_TRUE(SetUpLogging("info", "json").ok());
  testing::internal::CaptureStderr();

  LogEvent(LogLevel::kWarning, "odd", {{"a\"b", "c\\d\n\x01"}});
  spdlog::info("plain \"text\"");
  LogEvent(LogLevel::kDebug, "hidden", {});
  const std::string out = testing::internal::GetCapturedStderr();

  const size_t end = out.find('\n');
  ASSERT_NE(end, std::string::npos);
  const auto first = nlohmann::json::parse(out.substr(0, end));
  EXPECT_EQ(first["event"], "odd");
  EXPECT_EQ(first["level"], "warning");
  EXPECT_EQ(first["a\"b"], "c\\d\n\x01");
  const auto second = nlohmann::json::parse(out.substr(end + 1));
  EXPECT_EQ(second["event"], "log");
  EXPECT_EQ(second["message"], "plain \"text\"");
}

TEST(LogTest, NamesTheAcceptedWords) {
  EXPECT_EQ(std::string(SetLogLevel("loud").message()),
            "log level is 'loud'; allowed debug, info, warning, error");
  EXPECT_EQ(std::string(SetUpLogging("info", "xml").message()),
            "log format is 'xml'; allowed text, json");
}

}  // namespace
}  // namespace memtuned
