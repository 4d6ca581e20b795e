// SPDX-License-Identifier: Apache-2.0
// The address served with mutual TLS, and that nothing of it is missing.
#include <arpa/inet.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config.h"

namespace memtuned {
namespace {

// Numbers only: a name would be whatever the resolver says today.
bool IsAddress(const std::string& host) {
  unsigned char binary[sizeof(in6_addr)];
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    const std::string inner = host.substr(1, host.size() - 2);
    return inet_pton(AF_INET6, inner.c_str(), binary) == 1;
  }
  return inet_pton(AF_INET, host.c_str(), binary) == 1;
}

bool IsPort(std::string_view text) {
  int port = -1;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && parsed == end && port >= 0 && port <= 65535;
}

}  // namespace

absl::Status SetListenTls(Config& config, const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool good = colon != std::string::npos &&
                    IsAddress(text.substr(0, colon)) &&
                    IsPort(std::string_view(text).substr(colon + 1));
  if (!good && text != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Echo(text),
                     "; allowed IPV4-ADDRESS:PORT, [IPV6-ADDRESS]:PORT, off"));
  }
  config.listen_tls = text;
  return absl::OkStatus();
}

absl::Status CheckTls(const Config& config) {
  std::vector<std::string> given, missing;
  for (const char* key : {"tls-certificate", "tls-key", "tls-client-ca"}) {
    const bool empty = FindConfigSetting(key)->get(config).empty();
    (empty ? missing : given).push_back(key);
  }
  if (config.listen_tls == "off") {
    if (given.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(given, " and "),
                     " given, but no listen-tls to serve it on"));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "listen-tls is ", Echo(config.listen_tls), " without ",
      absl::StrJoin(missing, " and "),
      "; TCP is served with mutual TLS only: give tls-certificate, tls-key and "
      "tls-client-ca"));
}

}  // namespace memtuned
