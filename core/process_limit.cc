// SPDX-License-Identifier: Apache-2.0
#include "core/process_limit.h"

namespace memtuned {
namespace {

// Allowances were computed from another limit. A thread that raises its own
// meanwhile looks at the limit again after it did (Allocator::RaiseAllowance).
void TakeAllowances(const Mapping& m, ProcessOwner owner) {
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    ThreadSlot& thread = m.threads[i];
    if (owner == 0 || LoadRelaxed(thread.process) != owner) continue;
    Swap(thread.allowance, static_cast<uint64_t>(kNoAllowance));
  }
}

}  // namespace

bool HasOwnLimit(const ProcessSlot& slot) {
  const uint64_t own = LoadRelaxed(slot.limit_override) >> 32;
  return own != 0 && own == LoadRelaxed(slot.owner);
}

uint64_t LimitOf(const Segment& segment, const ProcessSlot& slot) {
  if (HasOwnLimit(slot)) {
    return static_cast<uint32_t>(LoadRelaxed(slot.limit_override));
  }
  const int64_t bytes = segment.IntegerTunable(TunableId::kProcessMaxBytes);
  return bytes <= 0 ? 0 : static_cast<uint64_t>(bytes) / kPageSizeBytes;
}

void PublishLimit(const Segment& segment, ProcessSlot& slot) {
  uint64_t pages;
  // Two may publish at once, each having read another limit. Exchanges of the
  // one word order them: the later one sees what the earlier one saw.
  do {
    pages = LimitOf(segment, slot);
    Swap(slot.limit_pages, pages);
  } while (LimitOf(segment, slot) != pages);
  TakeAllowances(segment.mapping(), LoadRelaxed(slot.owner));
  WriteLimited(slot.mems, slot.limit_pages);
}

void PublishLimits(const Segment& segment) {
  const Mapping& m = segment.mapping();
  // Free slots too: one may be about to be handed out.
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    PublishLimit(segment, m.processes[i]);
  }
}

void SetOwnLimit(const Segment& segment, ProcessSlot& slot, ProcessOwner owner,
                 std::optional<uint64_t> pages) {
  const uint64_t word =
      pages.has_value() ? uint64_t{owner} << 32 | *pages : uint64_t{0};
  Store(slot.limit_override, word);
  PublishLimit(segment, slot);
}

}  // namespace memtuned
