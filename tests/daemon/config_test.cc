// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace memtuned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandLine Line(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "memtuned");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

absl::StatusOr<Config> Load(std::vector<const char*> arguments) {
  const CommandLine line = Line(std::move(arguments));
  EXPECT_FALSE(line.exit_now) << line.exit_text;
  return LoadConfig(line);
}

std::string ErrorOf(const absl::StatusOr<Config>& config) {
  return config.ok() ? "" : std::string(config.status().message());
}

// The error of a file's text, "" when it is accepted.
std::string FileError(const std::string& text) {
  Config config;
  const absl::Status status = ReadConfigText(text, "f.yaml", config);
  return std::string(status.message());
}

std::string PoolError(const std::string& text) {
  return ErrorOf(Load({"--pool", text.c_str()}));
}

TEST(ConfigTest, HasDefaultsThatNeedOnlyAPool) {
  const auto config = Load({"--pool", "default=1GiB"});

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen, "unix:/run/memtuned/memtuned.sock");
  EXPECT_EQ(config->metrics_listen, "127.0.0.1:9750");
  EXPECT_EQ(config->topology, "live");
  EXPECT_EQ(config->sample_interval, std::chrono::seconds(1));
  ASSERT_EQ(config->pools.size(), 1u);
  const PoolConfig& pool = config->pools[0];
  EXPECT_EQ(pool.name, "default");
  EXPECT_EQ(pool.bytes, uint64_t{1} << 30);
  EXPECT_FALSE(pool.bytes_per_node);
  EXPECT_EQ(pool.populate, "reserve");
  EXPECT_EQ(pool.socket_path, "/run/memtuned/pools/default.sock");
  EXPECT_EQ(pool.socket_mode, 0660);
}

TEST(ConfigTest, ReadsEveryKeyOfAPool) {
  const auto config = Load(
      {"--pool",
       "big=256GiB/node,policy=fixed,populate=lazy,sections_per_second=10,"
       "mode=0600,watermark.scale_factor=30,watermark.min_free_kbytes=auto",
       "--pool", "small=4MiB"});

  ASSERT_TRUE(config.ok()) << config.status();
  const PoolConfig& pool = config->pools[0];
  EXPECT_EQ(pool.bytes, uint64_t{256} << 30);
  EXPECT_TRUE(pool.bytes_per_node);
  EXPECT_EQ(pool.populate, "lazy");
  EXPECT_EQ(pool.socket_mode, 0600);
  ASSERT_EQ(pool.tunables.size(), 4u);
  EXPECT_EQ(pool.tunables[0].tunable, "pageset.policy");
  EXPECT_EQ(pool.tunables[0].value, TunableValue(std::string("fixed")));
  EXPECT_EQ(pool.tunables[1].tunable, "init.sections_per_second");
  EXPECT_EQ(pool.tunables[1].value, TunableValue(int64_t{10}));
  EXPECT_EQ(pool.tunables[3].value, TunableValue(AutoValue{}));
  EXPECT_EQ(config->pools[1].bytes, uint64_t{4} << 20);
}

TEST(ConfigTest, RefusesBadPoolsNamingFieldAndAllowed) {
  EXPECT_THAT(PoolError("default"), HasSubstr("has no size"));
  EXPECT_THAT(PoolError("default="), HasSubstr("pool.default.size is ''"));
  for (const char* size :
       {"0", "-1GiB", "1.5GiB", "1GB", "1023KiB", "99999999999999999999",
        "2048TiB", "1048577", "GiB", "1GiB/zone", " 1GiB", "0x10GiB"}) {
    EXPECT_THAT(PoolError(std::string("a=") + size),
                HasSubstr("pool.a.size is '"))
        << size;
  }
  for (const char* name : {"", "A", "1a", "a_b", "a/b", "-a",
                           "a234567890123456789012345678901234"}) {
    EXPECT_THAT(PoolError(std::string(name) + "=1GiB"),
                HasSubstr("pool name is '"))
        << name;
  }
  EXPECT_THAT(PoolError("a=1GiB,mode=0888"), HasSubstr("0 to 0777"));
  EXPECT_THAT(PoolError("a=1GiB,mode=7777"), HasSubstr("0 to 0777"));
  EXPECT_THAT(PoolError("a=1GiB,populate=now"), HasSubstr("reserve, lazy"));
  EXPECT_THAT(PoolError("a=1GiB,colour=red"),
              HasSubstr("pool.a.colour is not a key of a pool"));
  EXPECT_THAT(PoolError("a=1GiB,policy"), HasSubstr("has no '='"));
  EXPECT_THAT(PoolError("a=1GiB,policy=best"), HasSubstr("adaptive-high"));
  EXPECT_THAT(PoolError("a=1GiB,pageset.batch_factor=9"),
              HasSubstr("allowed 0.25 to 8"));
  EXPECT_THAT(PoolError("a=1GiB,policy=fixed,policy=fixed"),
              HasSubstr("given twice"));
  EXPECT_THAT(PoolError("a=1GiB,policy=fixed,pageset.policy=memtuned"),
              HasSubstr("given twice"));
  EXPECT_THAT(PoolError("a=1GiB,size=2GiB"), HasSubstr("given twice"));
}

TEST(ConfigTest, RefusesTwoPoolsOfOneName) {
  EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--pool", "a=2GiB"})),
              HasSubstr("pool.a is defined twice"));
}

TEST(ConfigTest, RefusesToServeNothing) {
  EXPECT_THAT(ErrorOf(Load({})), HasSubstr("--pool NAME=SIZE"));
}

TEST(ConfigTest, RefusesTcpSayingWhy) {
  for (const char* address : {"127.0.0.1:9000", "0.0.0.0:1", "[::1]:1",
                              "dns:///x", "unix-abstract:x", ""}) {
    EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--listen", address})),
                HasSubstr("mutual TLS"))
        << address;
  }
}

TEST(ConfigTest, TakesTcpWithAllThatMutualTlsNeeds) {
  for (const char* address :
       {"127.0.0.1:0", "0.0.0.0:9751", "[::1]:9751", "[::]:65535"}) {
    const auto config = Load({"--pool", "a=1GiB", "--listen-tls", address,
                              "--tls-certificate", "/x/c.pem", "--tls-key",
                              "/x/k.pem", "--tls-client-ca", "/x/ca.pem"});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->listen_tls, address);
    EXPECT_EQ(config->tls_certificate, "/x/c.pem");
    EXPECT_EQ(config->tls_key, "/x/k.pem");
    EXPECT_EQ(config->tls_client_ca, "/x/ca.pem");
  }
}

TEST(ConfigTest, RefusesTcpWithoutAllOfIt) {
  EXPECT_THAT(
      ErrorOf(Load({"--pool", "a=1GiB", "--listen-tls", "0.0.0.0:9751"})),
      HasSubstr("listen-tls is '0.0.0.0:9751' without tls-certificate and "
                "tls-key and tls-client-ca; TCP is served with mutual TLS "
                "only"));
  EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--listen-tls", "0.0.0.0:9751",
                            "--tls-certificate", "c", "--tls-key", "k"})),
              HasSubstr("without tls-client-ca;"));
  EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--tls-key", "k"})),
              HasSubstr("tls-key given, but no listen-tls"));
  EXPECT_THAT(FileError("tls-key: '/k'\nlisten-tls: ''\n"),
              HasSubstr("f.yaml:2: listen-tls is ''"));
}

TEST(ConfigTest, RefusesAddressesThatAreNone) {
  for (const char* address :
       {"9751", "localhost:9751", "host.example:1", "127.0.0.1", "[::1]",
        "::1:9751", "[::1:9751", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:1x", "127.0.0.1:", "[]:1", "unix:/tmp/x"}) {
    EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--listen-tls", address})),
                HasSubstr("allowed IPV4-ADDRESS:PORT, [IPV6-ADDRESS]:PORT"))
        << address;
  }
}

TEST(ConfigTest, KeepsMetricsOnLoopbackUnlessToldOtherwise) {
  EXPECT_THAT(
      ErrorOf(Load({"--pool", "a=1GiB", "--metrics-listen", "0.0.0.0:9750"})),
      HasSubstr("metrics-allow-remote"));
  EXPECT_TRUE(Load({"--pool", "a=1GiB", "--metrics-listen", "0.0.0.0:9750",
                    "--metrics-allow-remote"})
                  .ok());
  EXPECT_TRUE(
      Load({"--pool", "a=1GiB", "--metrics-listen", "127.0.0.2:0"}).ok());
  EXPECT_TRUE(Load({"--pool", "a=1GiB", "--metrics-listen", "off"}).ok());
  EXPECT_FALSE(Load({"--pool", "a=1GiB", "--metrics-listen", "9750"}).ok());
}

TEST(ConfigTest, RefusesSocketPathsTheKernelCannotHold) {
  const std::string folder = "/tmp/" + std::string(100, 'd');

  EXPECT_THAT(
      ErrorOf(Load({"--pool", "a=1GiB", "--runtime-dir", folder.c_str()})),
      HasSubstr("allowed 1 to 107"));
}

TEST(ConfigTest, RefusesOddValuesOfSettings) {
  const auto error = [](const char* flag, const char* value) {
    return ErrorOf(Load({"--pool", "a=1GiB", flag, value}));
  };
  EXPECT_EQ(error("--sample-interval", "9ms"),
            "--sample-interval is '9ms'; allowed 10ms to 1h");
  EXPECT_THAT(error("--sample-interval", "inf"), HasSubstr("10ms to 1h"));
  EXPECT_THAT(error("--sample-interval", "1"), HasSubstr("10ms to 1h"));
  EXPECT_THAT(error("--log-level", "loud"), HasSubstr("debug, info"));
  EXPECT_THAT(error("--log-format", "xml"), HasSubstr("text, json"));
  EXPECT_THAT(error("--topology", "xml"), HasSubstr("synthetic:DESC"));
  EXPECT_THAT(error("--topology", "dead"), HasSubstr("live"));
  EXPECT_THAT(error("--runtime-dir", ""), HasSubstr("a path of 1"));
}

TEST(ConfigTest, ExitsWithUsageOnUnknownFlagsAndZeroOnHelp) {
  EXPECT_TRUE(Line({"--no-such-flag"}).exit_now);
  EXPECT_EQ(Line({"--no-such-flag"}).exit_code, 2);
  EXPECT_EQ(Line({"--log-level"}).exit_code, 2);
  EXPECT_EQ(Line({"stray"}).exit_code, 2);
  EXPECT_EQ(Line({"--log-level", "info", "--log-level", "info"}).exit_code, 2);
  const CommandLine help = Line({"--help"});
  EXPECT_TRUE(help.exit_now);
  EXPECT_EQ(help.exit_code, 0);
  for (const ConfigSetting& setting : ConfigSettings()) {
    EXPECT_THAT(help.exit_text, HasSubstr(std::string("--") + setting.key));
  }
  EXPECT_THAT(Line({"--version"}).exit_text, StartsWith("memtuned "));
}

TEST(ConfigFileTest, ReadsSettingsAndBothFormsOfAPool) {
  Config config;
  const absl::Status status = ReadConfigText(
      "# comment\n"
      "sample-interval: 2s\n"
      "metrics-per-cpu: true\n"
      "pool:\n"
      "  one: 1GiB,policy=fixed\n"
      "  two:\n"
      "    size: 2GiB/node\n"
      "    mode: 0600\n"
      "    pageset.batch_factor: 2\n",
      "f.yaml", config);

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.sample_interval, std::chrono::seconds(2));
  EXPECT_TRUE(config.metrics_per_cpu);
  ASSERT_EQ(config.pools.size(), 2u);
  EXPECT_EQ(config.pools[1].socket_mode, 0600);
  EXPECT_EQ(config.pools[1].tunables[0].value, TunableValue(2.0));
}

TEST(ConfigFileTest, AcceptsAnEmptyFile) {
  EXPECT_EQ(FileError(""), "");
  EXPECT_EQ(FileError("# nothing\n"), "");
  EXPECT_EQ(FileError("---\n"), "");
}

TEST(ConfigFileTest, NamesFileLineAndField) {
  EXPECT_THAT(FileError("log-level: info\nno-such: 1\n"),
              StartsWith("f.yaml:2: unknown key 'no-such'; allowed pool, "));
  EXPECT_EQ(FileError("\n\nlog-level: loud\n"),
            "f.yaml:3: log-level is 'loud'; allowed debug, info, warning, "
            "error");
  EXPECT_EQ(FileError("log-level: [info]\n"),
            "f.yaml:1: log-level is a list; allowed a single value");
  EXPECT_EQ(FileError("log-level:\n"),
            "f.yaml:1: log-level is empty; allowed a single value");
  EXPECT_THAT(FileError("pool:\n  a:\n    size: 1GiB\n    policy: best\n"),
              StartsWith("f.yaml:4: pool.a.policy: pageset.policy is"));
  EXPECT_THAT(FileError("pool:\n  a:\n    policy: fixed\n"),
              StartsWith("f.yaml:2: pool.a.size is missing"));
  EXPECT_EQ(FileError("pool:\n  a: 1GiB\n  a: 2GiB\n"),
            "f.yaml:3: pool.a is defined twice");
  EXPECT_EQ(FileError("pool:\n  a:\n    size: 1GiB\n    size: 2GiB\n"),
            "f.yaml:4: pool.a.size is given twice");
  EXPECT_EQ(FileError("log-level: info\nlog-level: info\n"),
            "f.yaml:2: log-level is given twice");
  EXPECT_THAT(FileError("pool: [a]\n"), StartsWith("f.yaml:1: pool is a list"));
  EXPECT_THAT(FileError("- a\n"), StartsWith("f.yaml:1: the file is a list"));
  EXPECT_THAT(FileError("[a]: b\n"), StartsWith("f.yaml:1: a key is a list"));
  EXPECT_THAT(FileError("a: b: c\n"), StartsWith("f.yaml:1: not YAML: "));
  EXPECT_THAT(FileError("a: 1\n---\nb: 2\n"),
              HasSubstr("more than one document"));
  EXPECT_THAT(FileError(" ,z"), HasSubstr("more than one document"));
  EXPECT_THAT(FileError("topology: &a live\nlisten: *a\n"),
              StartsWith("f.yaml:1: anchors and aliases"));
  EXPECT_THAT(FileError("a: &a [*a]\n"), HasSubstr("anchors and aliases"));
  EXPECT_THAT(FileError(std::string(100000, '[')), HasSubstr("not YAML"));
}

class ConfigFolderTest : public testing::Test {
 protected:
  ConfigFolderTest() {
    char folder[] = "/tmp/memtuned-config-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~ConfigFolderTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& text) {
    const std::string path = folder_ + "/memtuned.yaml";
    std::ofstream(path) << text;
    return path;
  }
  std::string folder_;
};

TEST_F(ConfigFolderTest, LetsFlagsWinOverTheFile) {
  const std::string path =
      Write("log-level: debug\nlog-format: json\npool: {a: 1GiB}\n");

  const auto config = Load({"--config", path.c_str(), "--log-level", "error"});

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->log_level, "error");
  EXPECT_EQ(config->log_format, "json");
  EXPECT_EQ(config->pools[0].name, "a");
}

TEST_F(ConfigFolderTest, PrintsValuesThatReadBackTheSame) {
  const auto first =
      Load({"--pool", "a=3MiB/node,policy=fixed,mode=0640", "--topology",
            "synthetic:node:2 pu:4", "--runtime-dir", "/tmp/it's", "--pool",
            "b=1GiB,watermark.min_free_kbytes=auto,populate=lazy"});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string path = Write(ConfigText(*first));

  const auto second = Load({"--config", path.c_str()});

  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(ConfigText(*second), ConfigText(*first));
  EXPECT_EQ(second->runtime_dir, "/tmp/it's");
  EXPECT_EQ(second->pools[0].bytes, uint64_t{3} << 20);
  EXPECT_EQ(second->pools[0].socket_mode, 0640);
}

TEST_F(ConfigFolderTest, SaysWhyAFileCannotBeRead) {
  const std::string missing = folder_ + "/none.yaml";

  EXPECT_THAT(ErrorOf(Load({"--config", missing.c_str()})),
              HasSubstr("No such file"));
  EXPECT_THAT(ErrorOf(Load({"--config", folder_.c_str()})),
              HasSubstr("not a regular file"));
  const std::string big = Write(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(ErrorOf(Load({"--config", big.c_str()})),
              HasSubstr("allowed 0 to 1048576"));
}

TEST(ConfigTest, ReadsRolesOfAFile) {
  Config config;
  const absl::Status status = ReadConfigText(
      "roles:\n"
      "  - role: operator\n"
      "    users: [root, 1000]\n"
      "    groups: root\n"
      "    identities: ['spiffe://fleet/ops/*', web-1.example]\n"
      "    subjects: [pools/a]\n"
      "  - {role: viewer, users: '*'}\n",
      "f.yaml", config);

  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(config.roles.size(), 2u);
  const RoleGrant& first = config.roles[0];
  EXPECT_EQ(first.role, Role::kOperator);
  EXPECT_THAT(first.users, ElementsAre(0u, 1000u));
  EXPECT_THAT(first.groups, ElementsAre(0u));
  EXPECT_THAT(first.identities,
              ElementsAre("spiffe://fleet/ops/*", "web-1.example"));
  EXPECT_THAT(first.subjects, ElementsAre("pools/a"));
  EXPECT_FALSE(first.every_user);
  EXPECT_EQ(config.roles[1].role, Role::kViewer);
  EXPECT_TRUE(config.roles[1].every_user);
}

TEST(ConfigTest, RolesOfTheCommandLineAreAdded) {
  const auto config =
      Load({"--pool", "a=1GiB", "--role", "viewer,users=*", "--role",
            "admin,users=1,users=2,identities=spiffe://f/x,subjects=pools/a"});

  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->roles.size(), 2u);
  EXPECT_EQ(config->roles[1].role, Role::kAdmin);
  EXPECT_THAT(config->roles[1].users, ElementsAre(1u, 2u));
  EXPECT_THAT(config->roles[1].identities, ElementsAre("spiffe://f/x"));
}

TEST(ConfigTest, RefusesRolesThatWouldNotMeanWhatTheySay) {
  const auto error = [](const std::string& entry) {
    return FileError("pool:\n  a: 1GiB\nroles:\n" + entry);
  };
  EXPECT_THAT(error("  - {role: root, users: 1}"),
              HasSubstr("f.yaml:4: roles.role is 'root'; allowed viewer, "
                        "operator, admin"));
  EXPECT_THAT(error("  - {users: 1}"), HasSubstr("an entry has no role"));
  EXPECT_THAT(error("  - {role: viewer}"),
              HasSubstr("no users, groups or identities"));
  EXPECT_THAT(error("  - {role: viewer, role: admin, users: 1}"),
              HasSubstr("roles.role is given twice"));
  EXPECT_THAT(error("  - {role: viewer, users: no-such-user-here}"),
              HasSubstr("roles.users is 'no-such-user-here'"));
  for (const char* id :
       {"-1", "4294967295", "4294967296", "' 1'", "'+1'", ""}) {
    EXPECT_THAT(error(std::string("  - {role: viewer, users: ['") +
                      (id[0] == '\'' ? std::string(id + 1, 2) : id) + "']}"),
                HasSubstr("roles.users is '"))
        << id;
  }
  EXPECT_THAT(error("  - {role: viewer, groups: '*'}"),
              HasSubstr("roles.groups is '*'"));
  for (const char* pattern : {"*", "spiffe://*", "spiffe://f*", "spiffe:///*",
                              "web-*", "https://f/*", "a b", ""}) {
    EXPECT_THAT(error(std::string("  - {role: viewer, identities: ['") +
                      pattern + "']}"),
                HasSubstr("roles.identities is '"))
        << pattern;
  }
  EXPECT_THAT(error("  - {role: viewer, user: 1}"),
              HasSubstr("'user' is not a key"));
  EXPECT_THAT(error("  - viewer"), HasSubstr("not a list of maps"));
  EXPECT_THAT(error("  []"), HasSubstr("not a list of maps"));
  EXPECT_THAT(error("  - {role: viewer, users: {a: b}}"),
              HasSubstr("roles.users is a map"));
  EXPECT_THAT(error("  - {role: viewer, users: [[1]]}"),
              HasSubstr("roles.users is a list; allowed a value or a list"));
  EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--role",
                            "viewer,users=1,subjects=pools/b"})),
              HasSubstr("roles.subjects is 'pools/b'; allowed pools/a"));
  EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--role", "viewer,users"})),
              HasSubstr("--role: 'users' has no '='"));
}

TEST(ConfigTest, ReadsWhoMayConnectAndHowOftenTheyMayChange) {
  const auto config =
      Load({"--pool", "a=1GiB", "--listen-mode", "0666", "--listen-group",
            "root", "--mutations-per-minute", "5", "--audit-log", "/x/a.log"});

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen_mode, 0666);
  EXPECT_EQ(config->listen_gid, 0);
  EXPECT_EQ(config->mutations_per_minute, 5);
  EXPECT_EQ(config->audit_log, "/x/a.log");
  EXPECT_THAT(ErrorOf(Load({"--pool", "a=1GiB", "--listen-mode", "0888"})),
              HasSubstr("0 to 0777"));
  EXPECT_THAT(
      ErrorOf(Load({"--pool", "a=1GiB", "--listen-group", "no-such-group"})),
      HasSubstr("--listen-group is 'no-such-group'"));
  EXPECT_THAT(
      ErrorOf(Load({"--pool", "a=1GiB", "--mutations-per-minute", "0"})),
      HasSubstr("1 to 1000000"));
}

TEST(ConfigTest, PrintsRolesAsItReadsThem) {
  const auto config =
      Load({"--pool", "a=1GiB", "--role",
            "operator,users=*,users=7,groups=8,identities=spiffe://f/it's/*,"
            "subjects=pools/a",
            "--listen-group", "-1"});
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string text = ConfigText(*config);
  Config again;

  const absl::Status read = ReadConfigText(text, "f.yaml", again);

  ASSERT_TRUE(read.ok()) << read << "\n" << text;
  EXPECT_EQ(ConfigText(again), text);
  EXPECT_TRUE(again.roles[0].every_user);
  EXPECT_THAT(again.roles[0].identities, ElementsAre("spiffe://f/it's/*"));
}

}  // namespace
}  // namespace memtuned
