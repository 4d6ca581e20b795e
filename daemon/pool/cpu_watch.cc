// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/cpu_watch.h"

#include <pthread.h>

#include <fstream>
#include <string_view>

#include "core/base/cpu_mask.h"
#include "core/online_cpus.h"
#include "core/slot_table.h"
#include "daemon/log.h"

namespace memtuned {

CpuWatch::CpuWatch(Segment* segment, std::string online_file,
                   std::chrono::milliseconds interval)
    : segment_(segment),
      online_file_(std::move(online_file)),
      interval_(interval),
      thread_([this] { Run(); }) {}

CpuWatch::~CpuWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stopping_changed_.NotifyAll();
  }
  thread_.join();
}

void CpuWatch::Run() {
  pthread_setname_np(pthread_self(), "cpu-watch");
  ThreadContext thread;
  TakeThreadSlot(*segment_, kDaemonProcess, &thread);
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) stopping_changed_.WaitFor(mutex_, interval_);
      if (stopping_) break;
    }
    Look(thread);
  }
  ReleaseThreadSlot(*segment_, thread);
}

void CpuWatch::Look(ThreadContext& thread) {
  std::ifstream file(online_file_);
  std::string text;
  std::getline(file, text);
  const auto cpus = ParseCpuList(std::string_view(text));
  if (!file || !cpus.ok() || cpus->empty()) {
    if (!complained_) {
      LogEvent(LogLevel::kWarning, "online-cpus-unreadable",
               {{"file", online_file_}, {"text", text}});
    }
    complained_ = true;
    return;
  }
  complained_ = false;
  if (SetOnlineCpus(*segment_, *cpus, thread)) {
    LogEvent(LogLevel::kInfo, "online-cpus-changed",
             {{"pool", segment_->name()}, {"cpus", text}});
  }
}

}  // namespace memtuned
