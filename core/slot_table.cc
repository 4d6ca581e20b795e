// SPDX-License-Identifier: Apache-2.0
#include "core/slot_table.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/thread_state.h"
#include "core/mm/owners.h"
#include "core/process_limit.h"

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

void StoreZeros(BlockCounts& counts) {
  for (OrderCounts& order : counts) {
    Store(order.taken, uint64_t{0});
    Store(order.given, uint64_t{0});
  }
}

}  // namespace

void BecomeDaemon(Segment& segment) {
  DaemonIdentity& daemon = segment.header().daemon;
  const auto pid = static_cast<uint32_t>(getpid());
  Store(daemon.pid, pid);
  Store(daemon.start_time_ticks, StartTimeOf(pid));
  // The one before may have died between a change of the tunable and this.
  PublishLimits(segment);
}

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
    StoreZeros(slot.retired);
    Store(slot.peak_pages, uint64_t{0});
    Store(slot.noted_pages, uint64_t{0});
    Store(slot.look_at_pages, uint64_t{0});
    Store(slot.gave_others_blocks, uint8_t{0});
    WriteMemsAllowed(slot.mems, NodeMask::All(), MemoryPolicy::kLocal,
                     NodeMask(), 0);
    const uint32_t owner = NextOwner<kProcessSlotBits>(slot.generation, i);
    Store(slot.owner, owner);
    PublishLimit(segment, slot);
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

void FreeUnownedSlots(Segment& segment) {
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    ProcessSlot& slot = m.processes[i];
    const uint32_t state = LoadRelaxed(slot.state);
    const bool unowned = LoadRelaxed(slot.owner) == 0 && state != kFree;
    if (!unowned && state != static_cast<uint32_t>(SlotState::kAttaching)) {
      continue;
    }
    Store(slot.owner, 0u);
    Store(slot.state, kFree);
  }
}

bool ProcessLeft(const Segment& segment, ProcessOwner process) {
  const Mapping& m = segment.mapping();
  const ProcessSlot* slot = FindProcessSlot(segment, process);
  if (slot == nullptr ||
      LoadRelaxed(slot->state) == static_cast<uint32_t>(SlotState::kDetached)) {
    return true;
  }
  bool any = false;
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    const ThreadSlot& thread = m.threads[i];
    if (LoadRelaxed(thread.process) != process) continue;
    if (!OwnerDied(m, LoadRelaxed(thread.owner))) return false;
    any = true;
  }
  return any;
}

bool TakeThreadSlot(const Segment& segment, ProcessOwner process,
                    ThreadContext* context) {
  const Mapping& m = segment.mapping();
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    const uint32_t number = (tid + i) % m.nr_threads;
    ThreadSlot& slot = m.threads[number];
    if (LoadRelaxed(slot.process) != 0) continue;
    uint32_t expected = 0;
    // From here on it goes with the process.
    if (!Exchange(slot.process, expected, process)) continue;
    LifePage& page = m.lives[number];
    const auto offset =
        static_cast<uint64_t>(reinterpret_cast<const char*>(&page) - m.base);
    if (!context->life.Begin(segment.metadata_fd(), offset, page)) {
      Store(slot.process, 0u);
      break;
    }
    Store(slot.tid, tid);
    Store(slot.pending, uint64_t{0});
    // Counts are 0: whoever releases a slot sees to it, as others add up the
    // process's from the moment that `process` names it.
    const uint32_t owner = NextOwner<kThreadSlotBits>(slot.generation, number);
    Store(slot.owner, owner);
    context->owner = owner;
    context->process = process;
    context->slot = &slot;
    return true;
  }
  context->owner = SlotlessOwner(process);
  context->process = process;
  context->slot = nullptr;
  return false;
}

namespace {

void AddToProcess(const Segment& segment, ThreadSlot& slot) {
  ProcessSlot* process = FindProcessSlot(segment, LoadRelaxed(slot.process));
  const auto held = static_cast<uint64_t>(PagesOf(slot.counts));
  for (size_t order = 0; order < slot.counts.size(); ++order) {
    OrderCounts& counts = slot.counts[order];
    if (LoadRelaxed(counts.taken) == 0 && LoadRelaxed(counts.given) == 0) {
      continue;
    }
    if (process != nullptr) {
      AtomicBump(process->retired[order].taken, LoadRelaxed(counts.taken));
      AtomicBump(process->retired[order].given, LoadRelaxed(counts.given));
    }
    Store(counts.taken, uint64_t{0});
    Store(counts.given, uint64_t{0});
  }
  Store(slot.allowance, static_cast<uint64_t>(kNoAllowance));
  if (process != nullptr) {
    AtomicBump(process->noted_pages, held - LoadRelaxed(slot.noted_pages));
  }
  Store(slot.noted_pages, uint64_t{0});
  Store(slot.looked_taken, 0u);
  Store(slot.looked_given, 0u);
}

// From here to there the thread's pages count twice: nobody may add up what
// the process holds, and refuse an allocation for it.
class LimitLock {
 public:
  LimitLock(const Segment& segment, const ThreadContext& thread)
      : process_(FindProcessSlot(segment, thread.process)) {
    if (process_ == nullptr || LoadRelaxed(process_->limit_pages) == 0) return;
    Patience patience;
    patience.Renew();
    LockWait wait;
    held_ = process_->limit_lock.LockWithin(
        thread.owner, ProbeOf(segment.mapping()), patience, &wait);
  }
  ~LimitLock() NO_THREAD_SAFETY_ANALYSIS {
    if (held_) process_->limit_lock.Unlock();
  }
  LimitLock(const LimitLock&) = delete;
  LimitLock& operator=(const LimitLock&) = delete;

 private:
  ProcessSlot* process_;
  bool held_ = false;
};

}  // namespace

void ReleaseThreadSlot(const Segment& segment, ThreadContext& context) {
  if (context.slot != nullptr &&
      LoadRelaxed(context.slot->owner) == context.owner) {
    {
      const LimitLock lock(segment, context);
      AddToProcess(segment, *context.slot);
    }
    // Not before the lock is free: a holder that is no owner is a dead one.
    Store(context.slot->owner, 0u);
    context.life.End();
    Store(context.slot->process, 0u);
  }
  context = ThreadContext{};
}

void ReleaseThreadSlotsOf(const Segment& segment, ProcessOwner process) {
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    ThreadSlot& slot = m.threads[i];
    if (LoadRelaxed(slot.process) == process) {
      ReleaseDeadThreadSlot(segment, slot);
    }
  }
}

void ReleaseDeadThreadSlot(const Segment& segment, ThreadSlot& slot) {
  const Mapping& m = segment.mapping();
  AddToProcess(segment, slot);
  Store(slot.pending, uint64_t{0});
  Store(slot.owner, 0u);
  Store(m.lives[&slot - m.threads].word, 0u);
  Store(slot.process, 0u);
}

void LeavePool(const Segment& segment, ProcessOwner process) {
  ProcessSlot* slot = FindProcessSlot(segment, process);
  if (slot == nullptr) return;
  Store(slot->state, static_cast<uint32_t>(SlotState::kDetached));
}

uint64_t HeldPages(const Segment& segment, ProcessOwner process) {
  const Mapping& m = segment.mapping();
  const ProcessSlot* slot = FindProcessSlot(segment, process);
  if (slot == nullptr) return 0;
  int64_t pages = PagesOf(slot->retired);
  for (uint32_t i = 0; i < m.nr_threads; ++i) {
    if (LoadRelaxed(m.threads[i].process) != process) continue;
    pages += PagesOf(m.threads[i].counts);
  }
  return pages > 0 ? static_cast<uint64_t>(pages) : 0;
}

}  // namespace memtuned
