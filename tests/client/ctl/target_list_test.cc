// SPDX-License-Identifier: Apache-2.0
// --targets, and the contexts that may name them.
#include "client/ctl/target_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "client/ctl/context.h"
#include "tests/client/ctl/temp_dir.h"

namespace memtuned::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Addresses(const std::string& text) {
  auto targets = ReadTargets(text);
  EXPECT_TRUE(targets.ok()) << targets.status();
  std::vector<std::string> addresses;
  for (const FleetTarget& target : *targets) {
    addresses.push_back(target.address);
  }
  return addresses;
}

std::string Problem(const std::string& text) {
  auto targets = ReadTargets(text);
  return targets.ok() ? "" : std::string(targets.status().message());
}

TEST(TargetListTest, ReadsAList) {
  EXPECT_THAT(Addresses("/a.sock, db-1:9751,[::1]:9751,unix:/a.sock"),
              ElementsAre("unix:/a.sock", "db-1:9751", "[::1]:9751"));
}

TEST(TargetListTest, ReadsAFileAndNamesItsLines) {
  TempDir dir;
  std::ofstream(dir.File("hosts")) << "# rack 1\n/a.sock\n\n"
                                   << "db-1:9751  # the big one\r\n";
  EXPECT_THAT(Addresses(dir.File("hosts")),
              ElementsAre("unix:/a.sock", "db-1:9751"));

  std::ofstream(dir.File("hosts"), std::ios::app) << "db-2:none\n";
  EXPECT_THAT(Problem(dir.File("hosts")), HasSubstr("hosts:5: target is"));
}

TEST(TargetListTest, AsksTheNameServiceForAllOfAName) {
  auto targets = ReadTargets("dns:///localhost:9751");
  ASSERT_TRUE(targets.ok()) << targets.status();
  ASSERT_FALSE(targets->empty());
  for (const FleetTarget& target : *targets) {
    EXPECT_THAT(target.address, ::testing::EndsWith(":9751"));
    EXPECT_EQ(target.server_name, "localhost");
  }
  EXPECT_THAT(Problem("dns:///no-such-host.invalid:9751"),
              HasSubstr("cannot resolve 'no-such-host.invalid'"));
}

TEST(TargetListTest, RefusesWhatNamesNobody) {
  EXPECT_THAT(Problem(" , "), HasSubstr("names no target"));
  EXPECT_THAT(Problem("/no/such/file"), "");  // a socket that may come
  EXPECT_THAT(Problem("db-1"), HasSubstr("'db-1'; allowed"));
  EXPECT_THAT(Problem("db-1:0"), HasSubstr("allowed"));
  EXPECT_THAT(Problem("db-1:65536"), HasSubstr("allowed"));
  EXPECT_THAT(Problem("::1:9751"), HasSubstr("allowed"));
}

constexpr char kContexts[] =
    "current-context: lab\n"
    "contexts:\n"
    "  lab: {target: /lab.sock}\n"
    "  production:\n"
    "    targets: [db-1:9751, db-2:9751]\n"
    "    tls-ca: ca.pem\n"
    "    tls-certificate: ann.pem\n"
    "    tls-key: ann.key\n";

TEST(ContextTest, ReadsTheCurrentOneAndThoseNamed) {
  auto current = ReadContext(kContexts, "f", "");
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->target, "/lab.sock");
  auto named = ReadContext(kContexts, "f", "production");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->targets, "db-1:9751,db-2:9751");
  EXPECT_EQ(named->tls.ca, "ca.pem");
  EXPECT_EQ(named->tls.certificate, "ann.pem");
  EXPECT_EQ(named->tls.key, "ann.key");
  EXPECT_TRUE(ReadContext("", "f", "").ok());
}

TEST(ContextTest, NamesWhatIsWrong) {
  const auto problem = [](const std::string& text, const std::string& name) {
    auto context = ReadContext(text, "f", name);
    return context.ok() ? "" : std::string(context.status().message());
  };
  EXPECT_THAT(problem(kContexts, "test"),
              HasSubstr("no context 'test'; it has lab, production"));
  EXPECT_THAT(problem("contexts: {a: {colour: red}}", "a"),
              HasSubstr("f:1: context a: 'colour' is no key; allowed target"));
  EXPECT_THAT(problem("\nusers: {}\n", ""),
              HasSubstr("f:2: 'users' is no key"));
  EXPECT_THAT(problem("contexts: [", "a"), HasSubstr("f:1: "));
}

TEST(ContextTest, TheCommandLineComesFirst) {
  TempDir dir;
  std::ofstream(dir.File("c")) << kContexts;
  setenv("MEMTUNECTL_CONFIG", dir.File("c").c_str(), 1);
  unsetenv("MEMTUNED_TARGET");
  const auto context = [](const std::vector<std::string>& words) {
    auto invocation = ParseCommandLine(words);
    EXPECT_TRUE(invocation.ok()) << invocation.status();
    auto found = ContextOf(*invocation);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  };
  EXPECT_EQ(context({"zones"}).target, "/lab.sock");
  EXPECT_EQ(context({"-t", "/x.sock", "zones"}).target, "/x.sock");
  const Context mixed =
      context({"--context", "production", "--tls-ca", "x.pem", "zones"});
  EXPECT_EQ(mixed.tls.ca, "x.pem");
  EXPECT_EQ(mixed.tls.key, "ann.key");
  EXPECT_EQ(mixed.targets, "db-1:9751,db-2:9751");
  setenv("MEMTUNED_TARGET", "/env.sock", 1);
  EXPECT_EQ(context({"zones"}).target, "");  // ParseTarget reads it
  unsetenv("MEMTUNED_TARGET");
  unsetenv("MEMTUNECTL_CONFIG");
}

}  // namespace
}  // namespace memtuned::ctl
