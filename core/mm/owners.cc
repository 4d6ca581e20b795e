// SPDX-License-Identifier: Apache-2.0
#include "core/mm/owners.h"

#include "core/base/thread_state.h"

namespace memtuned {
namespace {

bool SlotlessDied(const Mapping& m, ThreadOwner owner) {
  const uint32_t number = owner >> kThreadSlotBits & (kMaxProcesses - 1);
  if (number >= m.nr_processes) {
    // Creators are done once a daemon looks after the pool.
    return owner != kCreatorOwner || LoadRelaxed(m.daemon->pid) != 0;
  }
  const ProcessSlot& slot = m.processes[number];
  return SlotlessOwner(Load(slot.owner)) != owner ||
         LoadRelaxed(slot.state) == static_cast<uint32_t>(SlotState::kReaping);
}

}  // namespace

const char* LockKindName(LockKind kind) {
  constexpr const char* kNames[] = {"zone", "lru", "pageset", "tuning",
                                    "depot"};
  return kNames[static_cast<size_t>(kind)];
}

bool OwnerDied(const Mapping& m, ThreadOwner owner) {
  if (owner == 0) return false;
  const uint32_t number = ThreadSlotOf(owner);
  if (number == kSlotless) return SlotlessDied(m, owner);
  if (number >= m.nr_threads) return true;
  // Not Load: explored schedules need no choice here, both words only ever go
  // one way.
  if (m.threads[number].owner.load(std::memory_order_acquire) != owner) {
    return true;
  }
  const uint32_t life = m.lives[number].word.load(std::memory_order_acquire);
  return life == 0 || (life & kLifeDied) != 0;
}

ProcessOwner ProcessOf(const Mapping& m, ThreadOwner owner) {
  const uint32_t number = ThreadSlotOf(owner);
  if (number == kSlotless) {
    const uint32_t process = owner >> kThreadSlotBits & (kMaxProcesses - 1);
    return process < m.nr_processes ? LoadRelaxed(m.processes[process].owner)
                                    : 0;
  }
  if (number >= m.nr_threads || LoadRelaxed(m.threads[number].owner) != owner) {
    return 0;
  }
  return LoadRelaxed(m.threads[number].process);
}

bool OwnerMayRun(const Mapping& m, ThreadOwner owner) {
  const uint32_t number = ThreadSlotOf(owner);
  if (number == kSlotless || number >= m.nr_threads) return true;
  const ThreadSlot& thread = m.threads[number];
  const ProcessOwner process = ProcessOf(m, owner);
  const uint32_t tid = LoadRelaxed(thread.tid);
  uint32_t pid = LoadRelaxed(m.daemon->pid);
  uint64_t start = LoadRelaxed(m.daemon->start_time_ticks);
  if (process != kDaemonProcess) {
    const ProcessSlot& slot =
        m.processes[ProcessSlotOf(process) % m.nr_processes];
    pid = LoadRelaxed(slot.pid);
    start = LoadRelaxed(slot.start_time_ticks);
  }
  const ThreadState state = StateOfThread(pid, start, tid);
  return state != ThreadState::kHalted && state != ThreadState::kStopped;
}

void CountTakeover(const Mapping& m, LockKind kind) {
  AtomicBump(m.lock_takeovers[static_cast<size_t>(kind)]);
}

}  // namespace memtuned
