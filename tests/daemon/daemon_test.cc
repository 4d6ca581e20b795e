// SPDX-License-Identifier: Apache-2.0
// The daemon in this process: start, claims, reload, stop.
#include "daemon/daemon.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/reload.h"
#include "memtuned/v1/topology.grpc.pb.h"
#include "memtuned/v1/tuning.grpc.pb.h"
#include "tests/daemon/rpc/fake_subject.h"

namespace memtuned {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A GET of `path`, headers and all.
std::string HttpGet(const std::string& address, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(
      static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.0\r\nHost: localhost\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    char buffer[4096];
    ssize_t got;
    while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
      answer.append(buffer, static_cast<size_t>(got));
    }
  }
  close(fd);
  return answer;
}

class DaemonTest : public testing::Test {
 protected:
  DaemonTest() {
    char folder[] = "/tmp/memtuned-daemon-XXXXXX";
    folder_ = mkdtemp(folder);
    config_.runtime_dir = folder_ + "/run";
    config_.listen = "unix:" + config_.runtime_dir + "/memtuned.sock";
    config_.metrics_listen = "127.0.0.1:0";
    config_.topology = "synthetic:node:2 pu:2";
    config_.sample_interval = std::chrono::milliseconds(20);
    config_.pools.resize(1);
    config_.pools[0].name = "default";
    config_.pools[0].bytes = 1 << 30;
  }
  ~DaemonTest() override { std::filesystem::remove_all(folder_); }

  PoolFactory Factory() {
    return [this](const PoolConfig& pool, const Topology& topology,
                  FdStore*) -> absl::StatusOr<std::unique_ptr<Subject>> {
      topology_nodes_ = static_cast<int>(topology.nodes.size());
      auto subject = std::make_unique<FakeSubject>(
          FakeOptions{.name = "pools/" + pool.name});
      last_ = subject.get();
      return std::unique_ptr<Subject>(std::move(subject));
    };
  }

  absl::StatusOr<std::unique_ptr<Daemon>> Start() {
    return Daemon::Start(config_, Factory());
  }

  std::string folder_;
  Config config_;
  FakeSubject* last_ = nullptr;
  int topology_nodes_ = 0;
};

TEST_F(DaemonTest, ServesApiAndMetricsFromTheSameSamples) {
  auto daemon = Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  auto stub = v1::TopologyService::NewStub(
      grpc::CreateChannel(config_.listen, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ListSubjectsResponse response;

  ASSERT_TRUE(stub->ListSubjects(&context, {}, &response).ok());
  const std::string scrape = HttpGet((*daemon)->metrics_address(), "/metrics");

  EXPECT_EQ(topology_nodes_, 2);
  EXPECT_EQ(response.subjects(0).name(), "pools/default");
  EXPECT_EQ(response.subjects(0).state(), v1::SUBJECT_STATE_READY);
  EXPECT_THAT(scrape, HasSubstr("memtuned_zone_managed_bytes{subject=\"pools/"
                                "default\",node=\"1000\",zone=\"Normal\"}"));
  EXPECT_THAT(scrape,
              HasSubstr("memtuned_rpc_requests_total{method=\"TopologyService/"
                        "ListSubjects\",code=\"OK\"} 1"));
}

TEST_F(DaemonTest, LeavesNoSocketBehindAndMayStartAgain) {
  for (int i = 0; i < 2; ++i) {
    auto daemon = Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    EXPECT_TRUE(std::filesystem::exists(config_.listen.substr(5)));
    (*daemon)->Stop();
    (*daemon)->Stop();
    EXPECT_FALSE(std::filesystem::exists(config_.listen.substr(5)));
  }
}

TEST_F(DaemonTest, RefusesAFolderAnotherDaemonHolds) {
  auto first = Start();
  ASSERT_TRUE(first.ok());

  const auto second = Start();

  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("(pid " + std::to_string(getpid()) + ")"));
}

TEST_F(DaemonTest, RefusesASocketSomebodyAnswersOn) {
  auto first = Start();
  ASSERT_TRUE(first.ok());
  config_.runtime_dir = folder_ + "/other";

  const auto second = Start();

  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("listens on"));
  EXPECT_TRUE(std::filesystem::exists(config_.listen.substr(5)));
}

TEST_F(DaemonTest, RemovesASocketNobodyListensOn) {
  std::filesystem::create_directory(config_.runtime_dir);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  config_.listen.copy(address.sun_path, sizeof(address.sun_path) - 1, 5);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  close(fd);

  EXPECT_TRUE(Start().ok());
}

TEST_F(DaemonTest, LeavesAFileThatIsNoSocketAlone) {
  std::filesystem::create_directory(config_.runtime_dir);
  std::ofstream(config_.listen.substr(5)) << "precious";

  const auto daemon = Start();

  EXPECT_EQ(daemon.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(config_.listen.substr(5)));
}

TEST_F(DaemonTest, RefusesAFolderOthersMayWriteTo) {
  std::filesystem::create_directory(config_.runtime_dir);
  chmod(config_.runtime_dir.c_str(), 0777);

  const auto daemon = Start();

  EXPECT_EQ(daemon.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(daemon.status().message()), HasSubstr("mode 0777"));
}

TEST_F(DaemonTest, FailsAsAWholeWhenOnePartCannotStart) {
  auto first = Start();
  ASSERT_TRUE(first.ok());
  config_.runtime_dir = folder_ + "/second";
  config_.listen = "unix:" + folder_ + "/second.sock";
  config_.metrics_listen = (*first)->metrics_address();

  const auto second = Start();

  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/second.sock"));
  config_.metrics_listen = "off";
  EXPECT_TRUE(Start().ok());
}

TEST_F(DaemonTest, RefusesATopologyThatIsNone) {
  config_.topology = "xml:/no/such/file.xml";

  const auto daemon = Start();

  EXPECT_FALSE(daemon.ok());
  EXPECT_THAT(std::string(daemon.status().message()),
              HasSubstr("/no/such/file.xml"));
  EXPECT_FALSE(std::filesystem::exists(config_.runtime_dir));
}

TEST_F(DaemonTest, ReloadsIntervalAndTunablesAndNothingElse) {
  config_.sample_interval = std::chrono::hours(1);
  auto daemon = Start();
  ASSERT_TRUE(daemon.ok());
  const int taken = last_->snapshots_taken();
  Config next = config_;
  next.sample_interval = std::chrono::milliseconds(10);
  next.topology = "synthetic:node:3 pu:2";
  next.pools[0].tunables = {{"pageset.batch_factor", 2.0}};

  (*daemon)->Reload(next);
  for (int i = 0; i < 500 && last_->snapshots_taken() < taken + 3; ++i) {
    usleep(10000);
  }

  EXPECT_GE(last_->snapshots_taken(), taken + 3);
  EXPECT_EQ(last_->Tunables()[1].value, TunableValue(2.0));
  EXPECT_EQ(last_->Version().generation, 1);
  (*daemon)->Reload(next);
  EXPECT_EQ(last_->Version().generation, 1);
}

TEST_F(DaemonTest, AuditsWhatAReloadChanges) {
  config_.audit_log = folder_ + "/audit.log";
  auto daemon = Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  Config next = config_;
  next.pools[0].tunables = {{"pageset.batch_factor", 2.0}};
  std::filesystem::rename(config_.audit_log, folder_ + "/audit.log.1");

  (*daemon)->Reload(next);

  std::ifstream in(config_.audit_log);
  std::string line;
  std::getline(in, line);
  EXPECT_THAT(line, HasSubstr("\"caller\":\"config\",\"method\":\"reload\""));
  EXPECT_THAT(line, HasSubstr("\"before\":\"pageset.batch_factor=1\",\"after\":"
                              "\"pageset.batch_factor=2\""));
}

TEST_F(DaemonTest, DoesNotStartWithoutTheAuditLogAskedFor) {
  config_.audit_log = "/no/such/folder/audit.log";

  const auto daemon = Start();

  EXPECT_THAT(std::string(daemon.status().message()),
              HasSubstr("audit-log /no/such/folder/audit.log"));
}

TEST(ReloadTest, TakesRolesAndLimitsOver) {
  Config now;
  Config next = now;
  next.roles = {{.role = Role::kViewer, .users = {7}}};
  next.mutations_per_minute = 5;
  next.listen_mode = 0666;

  const ReloadPlan plan = PlanReload(now, next);
  const Config after = AfterReload(now, next, plan);

  EXPECT_THAT(plan.settings, ElementsAre("mutations-per-minute", "roles"));
  EXPECT_THAT(plan.needs_restart, ElementsAre("listen-mode"));
  EXPECT_EQ(RolesText(after), RolesText(next));
  EXPECT_EQ(after.mutations_per_minute, 5);
  EXPECT_TRUE(PlanReload(after, next).settings.empty());
}

TEST(ReloadTest, TakesTheUsersOfAPoolOver) {
  Config now;
  now.pools.resize(2);
  now.pools[0].name = "a";
  now.pools[1].name = "b";
  Config next = now;
  next.pools[1].users = {.attach = {.users = {7}}, .observe = {.groups = {8}}};

  const ReloadPlan plan = PlanReload(now, next);
  const Config after = AfterReload(now, next, plan);

  EXPECT_THAT(plan.needs_restart, ElementsAre());
  ASSERT_EQ(plan.users.size(), 1u);
  EXPECT_EQ(plan.users.at("b"), next.pools[1].users);
  EXPECT_EQ(after.pools[1].users, next.pools[1].users);
  EXPECT_TRUE(PlanReload(after, next).users.empty());
  EXPECT_EQ(PlanReload(after, now).users.at("b"), PoolUsers{});
}

TEST(ReloadTest, SortsDifferencesIntoNowAndRestart) {
  Config now;
  now.pools.resize(2);
  now.pools[0].name = "a";
  now.pools[0].tunables = {{"pageset.batch_factor", 2.0},
                           {"pageset.policy", std::string("fixed")}};
  now.pools[1].name = "gone";
  Config next = now;
  next.log_level = "debug";
  next.log_format = "json";
  next.pools[0].bytes = 1 << 20;
  next.pools[0].tunables = {{"pageset.policy", std::string("fixed")},
                            {"watermark.scale_factor", int64_t{20}}};
  next.pools[1].name = "new";

  const ReloadPlan plan = PlanReload(now, next);
  const Config after = AfterReload(now, next, plan);

  EXPECT_THAT(plan.settings, ElementsAre("log-level"));
  EXPECT_THAT(plan.needs_restart, ElementsAre("log-format", "pool.a.size",
                                              "pool.gone", "pool.new"));
  ASSERT_EQ(plan.tunables.at("a").size(), 2u);
  EXPECT_EQ(plan.tunables.at("a")[0].value, TunableValue(1.0));
  EXPECT_EQ(plan.tunables.at("a")[1].value, TunableValue(int64_t{20}));
  EXPECT_EQ(after.log_level, "debug");
  EXPECT_EQ(after.log_format, "text");
  EXPECT_TRUE(PlanReload(after, next).settings.empty());
  EXPECT_TRUE(PlanReload(after, next).tunables.empty());
}

}  // namespace
}  // namespace memtuned
