// SPDX-License-Identifier: Apache-2.0
// Any text for any tunable: refused with a short printable message, or a
// value that is in range and prints as a text that reads back to it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/tunables.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  memtuned::FindTunable(text);
  for (const memtuned::TunableDef& def : memtuned::TunableTable()) {
    const auto value = memtuned::ParseTunable(def, text);
    if (!value.ok()) {
      Require(value.status().message().size() < 600);
      for (const char c : value.status().message()) {
        Require(c >= ' ' && c < 0x7f);
      }
      continue;
    }
    Require(memtuned::CheckTunable(def, *value).ok());
    const auto again = memtuned::ParseTunable(def, memtuned::ValueText(*value));
    Require(again.ok() && *again == *value);
  }
  return 0;
}
