// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/reaper.h"

#include <pthread.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/reap.h"
#include "core/slot_table.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

// A lock's holder is stopped.
constexpr std::chrono::milliseconds kTryAgainAfter(100);

}  // namespace

Reaper::Reaper(Segment* segment, FdStore* store, std::string name)
    : segment_(segment), store_(store), name_(std::move(name)) {
  thread_ = std::thread([this] { Run(); });
}

Reaper::~Reaper() { Stop(); }

void Reaper::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool Reaper::Stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

void Reaper::Reap(ProcessWatch process) {
  MutexLock lock(mutex_);
  jobs_.push_back({std::move(process), 0});
  changed_.NotifyAll();
}

std::vector<Reaper::Job> Reaper::Wait() {
  MutexLock lock(mutex_);
  if (!again_.empty() && jobs_.empty() && !stopping_) {
    changed_.WaitFor(mutex_, kTryAgainAfter);
  }
  while (again_.empty() && jobs_.empty() && !stopping_) changed_.Wait(mutex_);
  return std::exchange(jobs_, {});
}

void Reaper::Run() {
  pthread_setname_np(pthread_self(), "reaper");
  TakeThreadSlot(*segment_, kDaemonProcess, &thread_context_);
  while (!Stopping()) {
    std::vector<Job> jobs = Wait();
    std::move(again_.begin(), again_.end(), std::back_inserter(jobs));
    again_.clear();
    for (Job& job : jobs) {
      if (Stopping() || !Finish(job)) again_.push_back(std::move(job));
    }
  }
  ReleaseThreadSlot(*segment_, thread_context_);
}

bool Reaper::Finish(Job& job) {
  const ProcessOwner owner = job.process.owner;
  const ProcessSlot* slot = FindProcessSlot(*segment_, owner);
  const uint32_t pid = slot == nullptr ? 0 : LoadRelaxed(slot->pid);
  const ReapResult result = ReapProcess(*segment_, owner, thread_context_);
  job.pages += result.pages;
  if (!result.done) return false;
  if (slot != nullptr) {
    LogEvent(job.pages == 0 ? LogLevel::kDebug : LogLevel::kInfo,
             "process-gone",
             {{"pool", name_},
              {"pid", absl::StrCat(pid)},
              {"pages_given_back", absl::StrCat(job.pages)}});
  }
  store_->ForgetClient(name_, owner);
  return true;
}

}  // namespace memtuned
