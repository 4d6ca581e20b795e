// SPDX-License-Identifier: Apache-2.0
// The daemon as a process of its own: signals, logs and exit codes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "memtuned/v1/stats.grpc.pb.h"

namespace memtuned {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() {
    char folder[] = "/tmp/memtuned-process-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~ProcessTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  void Spawn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FAKE_MEMTUNED);
    std::vector<char*> argv;
    for (std::string& text : arguments) argv.push_back(text.data());
    argv.push_back(nullptr);
    const std::string log = folder_ + "/log";
    std::filesystem::remove(log);
    pid_ = fork();
    if (pid_ == 0) {
      const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(fd, 1);
      dup2(fd, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }

  void SpawnReady(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "--runtime-dir",     folder_ + "/run",
        "--metrics-listen",  "127.0.0.1:0",
        "--topology",        "synthetic:node:2 pu:2",
        "--sample-interval", "20ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (more.empty()) {
      arguments.insert(arguments.end(), {"--pool", "default=1GiB"});
    }
    Spawn(arguments);
    ASSERT_TRUE(WaitForLog(" ready ")) << Log();
  }

  std::string Log() {
    std::ifstream in(folder_ + "/log");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  bool WaitForLog(const std::string& text) {
    for (int i = 0; i < 1000; ++i) {
      if (Log().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
  }

  // Exit code, or minus the signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string folder_;
  pid_t pid_ = -1;
};

TEST_F(ProcessTest, StopsInOrderOnSigtermWithAWatchOpen) {
  SpawnReady();
  auto stub = v1::StatsService::NewStub(
      grpc::CreateChannel("unix:" + folder_ + "/run/memtuned.sock",
                          grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::WatchSnapshotsRequest request;
  request.set_name("pools/default");
  auto reader = stub->WatchSnapshots(&context, request);
  v1::WatchSnapshotsResponse event;
  ASSERT_TRUE(reader->Read(&event));
  const auto start = steady_clock::now();

  kill(pid_, SIGTERM);
  while (reader->Read(&event)) {
  }
  const grpc::Status status = reader->Finish();
  const int code = Wait();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(code, 0) << Log();
  EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
  EXPECT_THAT(Log(), HasSubstr("stopped"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run/memtuned.sock"));
}

TEST_F(ProcessTest, ReadyLineSaysWhereItListens) {
  SpawnReady();

  EXPECT_THAT(Log(),
              HasSubstr("listen=unix:" + folder_ + "/run/memtuned.sock"));
  EXPECT_THAT(Log(), HasSubstr("subjects=pools/default"));
  EXPECT_THAT(Log(), HasSubstr("metrics=127.0.0.1:"));
  kill(pid_, SIGINT);
  EXPECT_EQ(Wait(), 0);
}

TEST_F(ProcessTest, ReloadsOnSighupAndKeepsRunningOnABadFile) {
  const std::string file = folder_ + "/memtuned.yaml";
  std::ofstream(file) << "log-level: info\npool:\n  default: 1GiB\n";
  SpawnReady({"--config", file});

  std::ofstream(file) << "log-level: loud\npool:\n  default: 1GiB\n";
  kill(pid_, SIGHUP);
  EXPECT_TRUE(WaitForLog("reload-refused")) << Log();
  EXPECT_THAT(Log(), HasSubstr("memtuned.yaml:1: log-level is 'loud'"));
  std::ofstream(file) << "log-level: debug\npool:\n  default: 2GiB\n";
  kill(pid_, SIGHUP);
  EXPECT_TRUE(WaitForLog("reloaded")) << Log();

  EXPECT_THAT(Log(), HasSubstr("reloaded changed=log-level "
                               "needs-restart=pool.default.size"));
  kill(pid_, SIGTERM);
  EXPECT_EQ(Wait(), 0);
}

TEST_F(ProcessTest, ExitsWithOneWhenAPoolCannotBeMade) {
  Spawn({"--runtime-dir", folder_ + "/run", "--metrics-listen", "off",
         "--topology", "synthetic:node:2 pu:2", "--pool", "broken=1GiB"});

  EXPECT_EQ(Wait(), 1);
  EXPECT_THAT(Log(), HasSubstr("pool broken: no memory for it"));
}

TEST_F(ProcessTest, ExitsWithTwoOnAMistakeInTheConfiguration) {
  Spawn({"--pool", "default=1GB"});

  EXPECT_EQ(Wait(), 2);
  EXPECT_THAT(Log(), HasSubstr("memtuned: --pool: pool.default.size is '1GB'"));
}

TEST_F(ProcessTest, ChecksWithoutStarting) {
  Spawn({"--check", "--runtime-dir", folder_ + "/run", "--topology",
         "synthetic:node:2 pu:2", "--pool", "default=1GiB,policy=fixed"});

  EXPECT_EQ(Wait(), 0);
  EXPECT_THAT(Log(), HasSubstr("pageset.policy: 'fixed'"));
  EXPECT_THAT(Log(), HasSubstr("2 nodes, 4 CPUs"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
}

TEST_F(ProcessTest, SurvivesAKillWithoutHelp) {
  SpawnReady();
  kill(pid_, SIGKILL);
  EXPECT_EQ(Wait(), -SIGKILL);

  SpawnReady();

  kill(pid_, SIGTERM);
  EXPECT_EQ(Wait(), 0);
}

}  // namespace
}  // namespace memtuned
