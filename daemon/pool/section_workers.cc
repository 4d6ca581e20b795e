// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/section_workers.h"

#include <pthread.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/slot_table.h"
#include "daemon/log.h"

namespace memtuned {

SectionWorkers::SectionWorkers(Segment* segment) : segment_(segment) {
  for (uint32_t zone = 0; zone < segment_->mapping().nr_zones; ++zone) {
    threads_.emplace_back([this, zone] { Run(zone); });
  }
}

SectionWorkers::~SectionWorkers() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stopping_changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool SectionWorkers::Wait() {
  const auto start = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  for (;;) {
    if (stopping_) return false;
    // Read anew each time: the rate may be changed while this waits.
    const int64_t rate =
        segment_->IntegerTunable(TunableId::kInitSectionsPerSecond);
    if (rate <= 0) return true;
    const auto due = start + std::chrono::nanoseconds(1000000000 / rate);
    const auto left = due - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return true;
    stopping_changed_.WaitFor(mutex_,
                              std::min<std::chrono::nanoseconds>(
                                  left, std::chrono::milliseconds(200)));
  }
}

void SectionWorkers::Run(uint32_t zone) {
  pthread_setname_np(pthread_self(), "sections");
  ThreadContext thread;
  TakeThreadSlot(*segment_, kDaemonProcess, &thread);
  const std::string where = absl::StrCat("nodes/", segment_->zone(zone).node());
  while (Wait()) {
    const auto more = segment_->InitialiseNextSection(zone, thread.owner);
    if (!more.ok()) {
      // The host may have memory later; what is there serves meanwhile.
      LogEvent(LogLevel::kWarning, "section-not-initialised",
               {{"pool", segment_->name()},
                {"where", where},
                {"error", std::string(more.status().message())}});
      MutexLock lock(mutex_);
      if (!stopping_) {
        stopping_changed_.WaitFor(mutex_, std::chrono::seconds(5));
      }
      continue;
    }
    if (!*more) break;
  }
  ReleaseThreadSlot(*segment_, thread);
}

}  // namespace memtuned
