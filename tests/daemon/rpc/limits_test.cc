// SPDX-License-Identifier: Apache-2.0
// What the server allows a connection, seen by a client that speaks HTTP/2
// by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <map>

#include "tests/daemon/rpc/test_server.h"

namespace memtuned {
namespace {

constexpr uint8_t kSettings = 4, kPing = 6, kGoAway = 7;
constexpr uint8_t kAck = 1;
constexpr uint16_t kMaxConcurrentStreams = 3;
constexpr uint32_t kEnhanceYourCalm = 11;

struct Frame {
  uint8_t type = 0, flags = 0;
  std::string payload;
};

uint32_t Number(const std::string& bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = at; i < at + size; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

class HandMadeClient {
 public:
  explicit HandMadeClient(const std::string& listen)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    listen.copy(address.sun_path, sizeof(address.sun_path) - 1, 5);
    EXPECT_EQ(
        connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    SendFrame({kSettings, 0, ""});
  }
  ~HandMadeClient() { close(fd_); }

  void SendFrame(const Frame& frame) {
    const auto size = static_cast<char>(frame.payload.size());
    Send(std::string{'\0', '\0', size, static_cast<char>(frame.type),
                     static_cast<char>(frame.flags), '\0', '\0', '\0', '\0'} +
         frame.payload);
  }

  // The next frame of a type, others are skipped. False when the server hangs
  // up first, or after 5 s.
  bool Next(uint8_t type, Frame& frame) {
    do {
      std::string head;
      if (!Read(9, head)) return false;
      frame.type = static_cast<uint8_t>(head[3]);
      frame.flags = static_cast<uint8_t>(head[4]);
      if (!Read(Number(head, 0, 3), frame.payload)) return false;
    } while (frame.type != type);
    return true;
  }

 private:
  void Send(const std::string& bytes) {
    // The server may have hung up.
    static_cast<void>(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0);
  }

  bool Read(size_t size, std::string& bytes) {
    bytes.clear();
    while (bytes.size() < size) {
      pollfd waiting{fd_, POLLIN, 0};
      if (poll(&waiting, 1, 5000) != 1) return false;
      char buffer[512];
      const ssize_t got =
          read(fd_, buffer, std::min(sizeof(buffer), size - bytes.size()));
      if (got <= 0) return false;
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }

  const int fd_;
};

TEST(LimitsTest, AConnectionHasAHundredStreams) {
  TestServer server;
  HandMadeClient client(server.listen());
  Frame frame;

  ASSERT_TRUE(client.Next(kSettings, frame));
  std::map<uint32_t, uint32_t> settings;
  for (size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
    settings[Number(frame.payload, at, 2)] = Number(frame.payload, at + 2, 4);
  }

  EXPECT_EQ(settings[kMaxConcurrentStreams], 100u);
}

TEST(LimitsTest, AClientThatPingsAllTheTimeIsSentAway) {
  TestServer server;
  HandMadeClient client(server.listen());
  Frame frame;
  ASSERT_TRUE(client.Next(kSettings, frame));
  client.SendFrame({kSettings, kAck, ""});

  for (int i = 0; i < 10; ++i) client.SendFrame({kPing, 0, "12345678"});

  ASSERT_TRUE(client.Next(kGoAway, frame));
  EXPECT_EQ(Number(frame.payload, 4, 4), kEnhanceYourCalm);
}

TEST(LimitsTest, AFewPingsAreAnswered) {
  TestServer server;
  HandMadeClient client(server.listen());
  Frame frame;
  ASSERT_TRUE(client.Next(kSettings, frame));

  client.SendFrame({kPing, 0, "12345678"});

  ASSERT_TRUE(client.Next(kPing, frame));
  EXPECT_EQ(frame.payload, "12345678");
  EXPECT_EQ(frame.flags, kAck);
}

}  // namespace
}  // namespace memtuned
