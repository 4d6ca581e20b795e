// SPDX-License-Identifier: Apache-2.0
// The HTTP server over a real socket: scrape, refusals, shutdown, and
// promtool's opinion of the text.
#include "daemon/metrics/metrics_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/metrics/rpc_metrics.h"
#include "tests/daemon/metrics/big_snapshot.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::shared_ptr<const Snapshot>> OneSnapshot() {
  return {std::make_shared<const Snapshot>(BigSnapshot(2, 4))};
}

absl::StatusOr<std::unique_ptr<MetricsServer>> StartOn(
    const std::string& listen, bool allow_remote = false) {
  MetricsOptions options;
  options.listen = listen;
  options.allow_remote = allow_remote;
  return MetricsServer::Start(options, OneSnapshot);
}

// A TCP connection to a port of this machine, or -1.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
      0) {
    close(fd);
    return -1;
  }
  return fd;
}

// What an HTTP GET of the path answers, headers included.
std::string Get(int port, const std::string& path) {
  const int fd = Connect(port);
  if (fd < 0) return "";
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[65536];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0) answer.append(buffer, n);
  close(fd);
  return answer;
}

double SecondsToStop(MetricsServer& server) {
  const auto start = std::chrono::steady_clock::now();
  server.Stop();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - start).count();
}

TEST(MetricsServerTest, ServesSnapshotsRpcCountsAndBuild) {
  const auto server = StartOn("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->rpc_observer()->Observe("StatsService/ListZones", 0, 0.002);

  const std::string text = Get((*server)->port(), "/metrics");

  EXPECT_THAT(text, HasSubstr("200 OK"));
  EXPECT_THAT(text, HasSubstr("memtuned_zone_managed_bytes{subject="));
  EXPECT_THAT(text,
              HasSubstr("memtuned_rpc_requests_total{method=\"StatsService/"
                        "ListZones\",code=\"OK\"} 1"));
  EXPECT_THAT(text, HasSubstr("memtuned_build_info{version=\"0."));
}

TEST(MetricsServerTest, TextIsCleanForPromtool) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  const auto server = StartOn("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->rpc_observer()->Observe("StatsService/ListZones", 0, 0.002);
  const std::string answer = Get((*server)->port(), "/metrics");
  const size_t body = answer.find("\r\n\r\n");
  ASSERT_NE(body, std::string::npos);

  FILE* promtool = popen("promtool check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  fwrite(answer.data() + body + 4, 1, answer.size() - body - 4, promtool);
  EXPECT_EQ(pclose(promtool), 0);
}

TEST(MetricsServerTest, HasNoOtherPage) {
  const auto server = StartOn("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();

  EXPECT_THAT(Get((*server)->port(), "/"), HasSubstr("404"));
  EXPECT_THAT(Get((*server)->port(), "/../../etc/passwd"),
              Not(HasSubstr("root:")));
}

TEST(MetricsServerTest, TellsThePortItPicked) {
  const auto server = StartOn("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();

  EXPECT_GT((*server)->port(), 0);
  EXPECT_EQ((*server)->address(),
            "127.0.0.1:" + std::to_string((*server)->port()));
}

TEST(MetricsServerTest, RefusesABusyPortAndSaysSo) {
  const auto first = StartOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();

  const auto second = StartOn((*first)->address());

  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr((*first)->address()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("Address already in use"));
}

TEST(MetricsServerTest, RefusesOtherAddressesUnlessAllowed) {
  const auto refused = StartOn("0.0.0.0:0");
  const auto allowed = StartOn("0.0.0.0:0", true);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("0.0.0.0:0; allowed 127.0.0.0/8"));
  EXPECT_TRUE(allowed.ok()) << allowed.status();
}

TEST(MetricsServerTest, RefusesAnAddressOfAnotherMachine) {
  const auto server = StartOn("192.0.2.1:9750", true);

  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
}

TEST(MetricsServerTest, StopsWithinTenthsOfASecond) {
  const auto server = StartOn("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_NE(Get((*server)->port(), "/metrics"), "");

  EXPECT_LT(SecondsToStop(**server), 0.5);
  EXPECT_EQ(Connect((*server)->port()), -1);
  EXPECT_LT(SecondsToStop(**server), 0.1);
}

TEST(MetricsServerTest, StopsWithASilentClientConnected) {
  const auto server = StartOn("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  const int silent = Connect((*server)->port());
  ASSERT_GE(silent, 0);

  EXPECT_LT(SecondsToStop(**server), 3.0);
  close(silent);
}

}  // namespace
}  // namespace memtuned
