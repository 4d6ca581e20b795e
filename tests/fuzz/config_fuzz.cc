// SPDX-License-Identifier: Apache-2.0
// Any text as a configuration file: refused with the file's name, or values
// that print to a file which reads back to the same values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/config.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  memtuned::Config config;
  const absl::Status read = memtuned::ReadConfigText(text, "f.yaml", config);
  if (!read.ok()) {
    Require(read.code() == absl::StatusCode::kInvalidArgument);
    Require(std::string(read.message()).rfind("f.yaml:", 0) == 0);
    return 0;
  }
  if (config.listen.empty()) config.listen = "unix:/run/x.sock";
  if (config.pools.empty()) return 0;
  const std::string printed = memtuned::ConfigText(config);
  memtuned::Config again;
  Require(memtuned::ReadConfigText(printed, "f.yaml", again).ok());
  Require(memtuned::ConfigText(again) == printed);
  return 0;
}
