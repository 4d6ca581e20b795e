// SPDX-License-Identifier: Apache-2.0
// Who may attach to a pool, as the configuration says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

TEST(ConfigUsersTest, AreReadFromFileAndFlag) {
  Config config;
  const absl::Status status = ReadConfigText(
      "pool:\n"
      "  a:\n"
      "    size: 1GiB\n"
      "    attach: {users: [root, 1000], groups: root}\n"
      "    observe: {users: '*'}\n"
      "  b: 1GiB\n"
      "  c: 1GiB,attach.users=7,attach.users=root,attach.groups=8,"
      "observe.groups=9\n",
      "f.yaml", config);

  ASSERT_TRUE(status.ok()) << status;
  const PoolUsers a{.attach = {.users = {0, 1000}, .groups = {0}},
                    .observe = {.everyone = true}};
  const PoolUsers c{.attach = {.users = {7, 0}, .groups = {8}},
                    .observe = {.groups = {9}}};
  EXPECT_EQ(config.pools[0].users, a);
  EXPECT_EQ(config.pools[1].users, PoolUsers{});
  EXPECT_EQ(config.pools[2].users, c);
}

TEST(ConfigUsersTest, ArePrintedAsTheyAreRead) {
  CommandLine line;
  line.pools = {
      "a=1GiB,attach.users=7,attach.users=*,attach.groups=8,observe.groups=9",
      "b=1GiB"};
  const auto config = LoadConfig(line);
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string text = ConfigText(*config);
  Config again;

  const absl::Status read = ReadConfigText(text, "f.yaml", again);

  ASSERT_TRUE(read.ok()) << read << "\n" << text;
  EXPECT_EQ(ConfigText(again), text);
  EXPECT_EQ(again.pools[0].users, config->pools[0].users);
  EXPECT_EQ(again.pools[1].users, PoolUsers{});
}

TEST(ConfigUsersTest, RefusesListsThatWouldNotMeanWhatTheySay) {
  const auto error = [](const std::string& lines) {
    Config config;
    return std::string(ReadConfigText("pool:\n  a:\n    size: 1GiB\n" + lines,
                                      "f.yaml", config)
                           .message());
  };
  EXPECT_EQ(error("    attach: {users: [no-such-user-here]}\n"),
            "f.yaml:4: pool.a.attach.users is 'no-such-user-here'; allowed a "
            "uid, the name of a user, or '*'");
  EXPECT_EQ(error("    attach: {groups: '*'}\n"),
            "f.yaml:4: pool.a.attach.groups is '*'; allowed a gid or the name "
            "of a group");
  for (const char* nobody : {"{}", "{users: []}", "[root]", "root", ""}) {
    EXPECT_EQ(error(std::string("    attach: ") + nobody + "\n"),
              "f.yaml:4: pool.a.attach names nobody; allowed a map with users, "
              "groups or both")
        << nobody;
  }
  EXPECT_THAT(error("    attach: {user: 1}\n"),
              HasSubstr("pool.a.attach.user is not a key of a pool; allowed"));
  EXPECT_THAT(error("    attach: {users: {a: b}}\n"),
              HasSubstr("pool.a.attach.users is a map; allowed a value or"));
  EXPECT_THAT(error("    attach: {users: 1}\n    attach: {users: 2}\n"),
              HasSubstr("f.yaml:5: pool.a.attach is given twice"));
  EXPECT_THAT(error("    observe: {users: 1}\n"),
              HasSubstr("f.yaml:2: pool.a.observe needs pool.a.attach"));
  CommandLine line;
  line.pools = {"a=1GiB,attach=root"};
  EXPECT_THAT(std::string(LoadConfig(line).status().message()),
              HasSubstr("pool.a.attach is not a key of a pool"));
}

}  // namespace
}  // namespace memtuned
