// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/idle_watch.h"

#include <pthread.h>

#include <chrono>

#include "core/idle_pagesets.h"
#include "core/slot_table.h"

namespace memtuned {
namespace {

// The kernel's vm.stat_interval.
constexpr std::chrono::seconds kTick(1);

}  // namespace

IdleWatch::IdleWatch(Segment* segment)
    : segment_(segment), thread_([this] { Run(); }) {}

IdleWatch::~IdleWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stopping_changed_.NotifyAll();
  }
  thread_.join();
}

bool IdleWatch::Wait() {
  const auto due = std::chrono::steady_clock::now() + kTick;
  MutexLock lock(mutex_);
  for (;;) {
    if (stopping_) return false;
    const auto left = due - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return true;
    stopping_changed_.WaitFor(
        mutex_, std::chrono::duration_cast<std::chrono::nanoseconds>(left));
  }
}

void IdleWatch::Run() {
  pthread_setname_np(pthread_self(), "idle-pagesets");
  ThreadContext thread;
  TakeThreadSlot(*segment_, kDaemonProcess, &thread);
  IdlePagesets pagesets(segment_);
  while (Wait()) pagesets.Tick(thread);
  ReleaseThreadSlot(*segment_, thread);
}

}  // namespace memtuned
