// SPDX-License-Identifier: Apache-2.0
#include "core/slot_table.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

// The next owner id of a slot: its generation moves on and is never 0.
template <int kBits>
uint32_t NextOwner(Shared32& generation, uint32_t slot) {
  uint32_t next = (LoadRelaxed(generation) + 1) & ((1u << (32 - kBits)) - 1);
  if (next == 0) next = 1;
  Store(generation, next);
  return next << kBits | slot;
}

constexpr auto kFree = static_cast<uint32_t>(SlotState::kFree);

}  // namespace

absl::StatusOr<ProcessOwner> TakeProcessSlot(Segment& segment,
                                             const ProcessIdentity& identity) {
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    ProcessSlot& slot = m.processes[i];
    uint32_t expected = kFree;
    if (!Exchange(slot.state, expected,
                  static_cast<uint32_t>(SlotState::kAttaching))) {
      continue;
    }
    const uint32_t words = m.words_of_sections();
    for (uint32_t w = 0; w < words; ++w) {
      Store(m.process_sections[size_t{i} * words + w], uint64_t{0});
    }
    Store(slot.pid, identity.pid);
    Store(slot.uid, identity.uid);
    Store(slot.gid, identity.gid);
    Store(slot.start_time_ticks, identity.start_time_ticks);
    Store(slot.attached_unix_ns, identity.attached_unix_ns);
    Store(slot.retired_taken_pages, uint64_t{0});
    Store(slot.retired_given_pages, uint64_t{0});
    Store(slot.gave_others_blocks, 0u);
    slot.mems.cpuset = NodeMask::All();
    slot.mems.requested = NodeMask::All();
    WriteMemsAllowed(slot.mems, NodeMask::All(), MemoryPolicy::kLocal,
                     NodeMask(), 0);
    const uint32_t owner = NextOwner<kProcessSlotBits>(slot.generation, i);
    Store(slot.owner, owner);
    Store(slot.state, static_cast<uint32_t>(SlotState::kAttached));
    return owner;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "all ", m.nr_processes, " process slots of the pool are taken"));
}

ProcessSlot* FindProcessSlot(const Segment& segment, ProcessOwner owner) {
  const Mapping& m = segment.mapping();
  const uint32_t number = ProcessSlotOf(owner);
  if (owner == 0 || number >= m.nr_processes) return nullptr;
  ProcessSlot& slot = m.processes[number];
  return LoadRelaxed(slot.owner) == owner ? &slot : nullptr;
}

void ReleaseProcessSlot(Segment& segment, ProcessOwner owner) {
  ProcessSlot* slot = FindProcessSlot(segment, owner);
  if (slot == nullptr) return;
  ReleaseThreadSlotsOf(segment, owner);
  Store(slot->owner, 0u);
  Store(slot->state, kFree);
}

bool TakeThreadSlot(const Segment& segment, ProcessOwner process,
                    ThreadContext* context) {
  const Mapping& m = segment.mapping();
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    const uint32_t number = (tid + i) % m.nr_threads;
    ThreadSlot& slot = m.threads[number];
    if (LoadRelaxed(slot.owner) != 0) continue;
    uint32_t expected = 0;
    // Claimed with a placeholder that is no owner of anything.
    if (!Exchange(slot.owner, expected, kCreatorOwner)) continue;
    Store(slot.process, process);
    Store(slot.tid, tid);
    Store(slot.pending, uint64_t{0});
    Store(slot.taken_pages, uint64_t{0});
    Store(slot.given_pages, uint64_t{0});
    const uint32_t owner = NextOwner<kThreadSlotBits>(slot.generation, number);
    Store(slot.owner, owner);
    context->owner = owner;
    context->slot = &slot;
    return true;
  }
  context->owner = kCreatorOwner;
  context->slot = nullptr;
  return false;
}

namespace {

void Retire(const Segment& segment, ThreadSlot& slot) {
  ProcessSlot* process = FindProcessSlot(segment, LoadRelaxed(slot.process));
  if (process != nullptr) {
    AtomicBump(process->retired_taken_pages, LoadRelaxed(slot.taken_pages));
    AtomicBump(process->retired_given_pages, LoadRelaxed(slot.given_pages));
  }
  Store(slot.process, 0u);
  Store(slot.owner, 0u);
}

}  // namespace

void ReleaseThreadSlot(const Segment& segment, ThreadContext& context) {
  if (context.slot != nullptr &&
      LoadRelaxed(context.slot->owner) == context.owner) {
    Retire(segment, *context.slot);
  }
  context = ThreadContext{};
}

void ReleaseThreadSlotsOf(const Segment& segment, ProcessOwner process) {
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    if (LoadRelaxed(m.threads[i].process) == process) {
      Retire(segment, m.threads[i]);
    }
  }
}

uint64_t HeldPages(const Segment& segment, ProcessOwner process) {
  const Mapping& m = segment.mapping();
  const ProcessSlot* slot = FindProcessSlot(segment, process);
  if (slot == nullptr) return 0;
  uint64_t taken = LoadRelaxed(slot->retired_taken_pages);
  uint64_t given = LoadRelaxed(slot->retired_given_pages);
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    if (LoadRelaxed(m.threads[i].process) != process) continue;
    taken += LoadRelaxed(m.threads[i].taken_pages);
    given += LoadRelaxed(m.threads[i].given_pages);
  }
  return taken > given ? taken - given : 0;
}

}  // namespace memtuned
