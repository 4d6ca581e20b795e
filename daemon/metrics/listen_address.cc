// SPDX-License-Identifier: Apache-2.0
// Strict reading of HOST:PORT. civetweb's own syntax (lists, suffixes for
// TLS) never reaches it from outside.
#include "daemon/metrics/listen_address.h"

#include <arpa/inet.h>

#include <charconv>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

absl::Status Refused(std::string_view text, const char* why) {
  const std::string_view shown = text.substr(0, 80);
  return absl::InvalidArgumentError(absl::StrCat(
      "metrics listen address is \"",
      absl::CHexEscape(absl::string_view(shown.data(), shown.size())), "\": ",
      why, "; allowed IPV4-ADDRESS:PORT or localhost:PORT, PORT 0 to 65535"));
}

}  // namespace

std::string ListenAddress::Text() const {
  return absl::StrCat(host, ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Refused(text, "no port");
  const std::string_view port_text = text.substr(colon + 1);
  ListenAddress address;
  address.host = std::string(text.substr(0, colon));
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (address.host.find(':') != std::string::npos) {
    return Refused(text, "IPv6 is not supported by the metrics server");
  }

  in_addr binary{};
  if (inet_pton(AF_INET, address.host.c_str(), &binary) != 1) {
    return Refused(text, "host is not an IPv4 address");
  }
  address.loopback = (ntohl(binary.s_addr) >> 24) == 127;

  const char* end = port_text.data() + port_text.size();
  const auto [parsed, error] =
      std::from_chars(port_text.data(), end, address.port);
  if (error != std::errc() || parsed != end || address.port < 0 ||
      address.port > 65535) {
    return Refused(text, "bad port");
  }
  return address;
}

}  // namespace memtuned
