// SPDX-License-Identifier: Apache-2.0
// Any text as a CPU list and as a CPU mask: a limit in the first two bytes,
// then the text. What is accepted must be ascending, within the limit, and
// come back from its own printed form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/base/cpu_mask.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Check(const absl::StatusOr<std::vector<int>>& cpus, int max) {
  if (!cpus.ok()) {
    Require(cpus.status().code() == absl::StatusCode::kInvalidArgument);
    Require(!cpus.status().message().empty());
    return;
  }
  int last = -1;
  for (int cpu : *cpus) {
    Require(cpu > last && cpu <= max);
    last = cpu;
  }
  const absl::StatusOr<std::vector<int>> again =
      memtuned::ParseCpuList(memtuned::FormatCpuList(*cpus), max);
  Require(again.ok() && *again == *cpus);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const int max = (data[0] << 8 | data[1]) % (memtuned::kMaxCpuNumber + 1);
  const std::string_view text(reinterpret_cast<const char*>(data + 2),
                              size - 2);
  Check(memtuned::ParseCpuList(text, max), max);
  Check(memtuned::ParseCpuMask(text, max), max);
  return 0;
}
