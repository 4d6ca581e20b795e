// SPDX-License-Identifier: Apache-2.0
// Any text as a metrics address: refused, or an address that reads back to
// itself and is loopback only when it starts with 127.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/metrics/listen_address.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = memtuned::ParseListenAddress(text);
  if (!address.ok()) return 0;
  Require(address->port >= 0 && address->port <= 65535);
  Require(address->loopback == (address->host.rfind("127.", 0) == 0));
  const auto again = memtuned::ParseListenAddress(address->Text());
  Require(again.ok() && again->Text() == address->Text());
  return 0;
}
