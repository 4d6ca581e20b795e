// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace memtuned {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ListenAddressTest, ReadsAddressAndPort) {
  const auto address = ParseListenAddress("127.0.0.1:9750");

  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 9750);
  EXPECT_TRUE(address->loopback);
  EXPECT_EQ(address->Text(), "127.0.0.1:9750");
}

TEST(ListenAddressTest, LoopbackIsTheWholeBlockAndNothingElse) {
  EXPECT_TRUE(ParseListenAddress("127.255.0.9:1")->loopback);
  EXPECT_TRUE(ParseListenAddress("localhost:0")->loopback);
  EXPECT_FALSE(ParseListenAddress("0.0.0.0:1")->loopback);
  EXPECT_FALSE(ParseListenAddress("128.0.0.1:1")->loopback);
  EXPECT_FALSE(ParseListenAddress("10.127.0.0:1")->loopback);
}

TEST(ListenAddressTest, SaysThatIpv6IsNotSupported) {
  for (const char* text : {"[::1]:9750", "::1:9750", "[::]:0"}) {
    const auto address = ParseListenAddress(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(address.status().message()),
                HasSubstr("IPv6 is not supported"));
  }
}

class BadAddressTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BadAddressTest, IsRefusedByNameAndWithWhatIsAllowed) {
  const auto address = ParseListenAddress(GetParam());

  ASSERT_FALSE(address.ok()) << GetParam();
  const std::string message(address.status().message());
  EXPECT_THAT(message, HasSubstr("metrics listen address"));
  EXPECT_THAT(message, HasSubstr("PORT 0 to 65535"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadAddressTest,
    ::testing::Values("", ":", ":9750", "9750", "127.0.0.1", "127.0.0.1:",
                      "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:97 50",
                      "127.0.0.1:9750s", "127.0.0.1:1,0.0.0.0:2", "127.1:1",
                      "0x7f.0.0.1:1", "example.com:1", "*:9750",
                      "127.0.0.1\n:1", "127.0.0.1:+1"));

}  // namespace
}  // namespace memtuned
