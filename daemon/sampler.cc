// SPDX-License-Identifier: Apache-2.0
// The sampling loop, and the ring each watcher reads from.
#include "daemon/sampler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

}  // namespace

SnapshotWatch::Event SnapshotWatch::Next(milliseconds timeout) {
  const SteadyTime deadline = Clock::now() + timeout;
  MutexLock lock(mutex_);
  while (ring_.empty() && !ended_) {
    const auto left = deadline - Clock::now();
    if (left <= nanoseconds(0)) break;
    changed_.WaitFor(mutex_, left);
  }
  Event event;
  event.ended = ended_;
  if (ended_ || ring_.empty()) return event;
  event.snapshot = std::move(ring_.front());
  ring_.pop_front();
  event.missed = std::exchange(missed_, 0);
  return event;
}

void SnapshotWatch::Offer(std::shared_ptr<const Snapshot> snapshot,
                          SteadyTime now) {
  MutexLock lock(mutex_);
  // A sample may come a little early after one that came late.
  if (offered_ && now - last_offer_ < min_interval_ - min_interval_ / 20) {
    return;
  }
  offered_ = true;
  last_offer_ = now;
  if (ring_.size() == kCapacity) {
    ring_.pop_front();
    ++missed_;
  }
  ring_.push_back(std::move(snapshot));
  changed_.NotifyAll();
}

void SnapshotWatch::End() {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

Sampler::Sampler(Subject* subject, SamplerOptions options,
                 std::function<void(bool)> on_health)
    : subject_(subject),
      options_(options),
      on_health_(std::move(on_health)),
      interval_(options.interval) {}

Sampler::~Sampler() { Stop(); }

void Sampler::Start() {
  {
    MutexLock lock(mutex_);
    expected_ = Clock::now();
  }
  thread_ = std::thread([this] { Run(); });
}

void Sampler::Stop() {
  EndWatches();
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyAll();
    sampled_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Sampler::EndWatches() {
  std::vector<std::weak_ptr<SnapshotWatch>> watches;
  {
    MutexLock lock(mutex_);
    watches_ended_ = true;
    watches.swap(watches_);
  }
  for (const auto& weak : watches) {
    if (auto watch = weak.lock()) watch->End();
  }
}

void Sampler::SetInterval(milliseconds interval) {
  MutexLock lock(mutex_);
  interval_ = interval;
  wake_.NotifyAll();
}

std::shared_ptr<const Snapshot> Sampler::Latest() const {
  MutexLock lock(mutex_);
  return latest_;
}

absl::StatusOr<std::shared_ptr<const Snapshot>> Sampler::LatestFull(
    SteadyTime deadline) {
  MutexLock lock(mutex_);
  const SteadyTime now = Clock::now();
  full_wanted_until_ = now + options_.full_keep;
  const auto max_age = 2 * interval_ + milliseconds(100);
  if (latest_full_ && now - full_taken_ <= max_age) return latest_full_;
  if (WaitForSampleLocked(started_ + 1, deadline) && latest_full_ &&
      full_taken_ >= now) {
    return latest_full_;
  }
  if (stopping_) return absl::UnavailableError("the daemon is stopping");
  if (!last_status_.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the last sample of ", subject_->name(),
                     " failed: ", std::string(last_status_.message())));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "no full sample of ", subject_->name(), " before the deadline"));
}

bool Sampler::Refresh(SteadyTime deadline) {
  MutexLock lock(mutex_);
  return WaitForSampleLocked(started_ + 1, deadline) && last_status_.ok();
}

bool Sampler::WaitForSampleLocked(int64_t number, SteadyTime deadline) {
  requested_ = std::max(requested_, number);
  wake_.NotifyAll();
  while (done_ < number && !stopping_) {
    const auto left = deadline - Clock::now();
    if (left <= nanoseconds(0)) return false;
    // A deadline may be as far away as the clock goes.
    sampled_.WaitFor(mutex_, std::min<nanoseconds>(left, milliseconds(1000)));
  }
  return done_ >= number;
}

std::shared_ptr<SnapshotWatch> Sampler::Watch(nanoseconds min_interval) {
  auto watch = std::make_shared<SnapshotWatch>(min_interval);
  MutexLock lock(mutex_);
  if (watches_ended_) {
    watch->End();
    return watch;
  }
  if (latest_) watch->Offer(latest_, Clock::now());
  watches_.push_back(watch);
  return watch;
}

nanoseconds Sampler::Overdue() const {
  MutexLock lock(mutex_);
  return Clock::now() - expected_;
}

int64_t Sampler::failures() const {
  MutexLock lock(mutex_);
  return failures_;
}

std::string Sampler::last_error() const {
  MutexLock lock(mutex_);
  return std::string(last_status_.message());
}

void Sampler::Run() {
  SteadyTime due = Clock::now();
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!stopping_ && done_ >= requested_) {
        const SteadyTime now = Clock::now();
        due = std::min(due, now + interval_);
        if (due <= now) break;
        expected_ = due;
        wake_.WaitFor(mutex_, due - now);
      }
      if (stopping_) return;
      expected_ = Clock::now();
      due = expected_ + interval_;
    }
    TakeOne();
  }
}

void Sampler::TakeOne() {
  bool full;
  {
    MutexLock lock(mutex_);
    ++started_;
    full = options_.always_full || Clock::now() < full_wanted_until_;
  }
  absl::StatusOr<Snapshot> taken = subject_->TakeSnapshot(full);
  const absl::Status status = taken.status();
  bool changed = false;
  {
    MutexLock lock(mutex_);
    changed = done_ == 0 || last_status_.ok() != status.ok();
    PublishLocked(std::move(taken), full);
  }
  if (!changed) return;
  if (!status.ok()) {
    LogEvent(LogLevel::kError, "sample-failed",
             {{"subject", subject_->name()}, {"error", status.ToString()}});
  }
  if (on_health_) on_health_(status.ok());
}

void Sampler::PublishLocked(absl::StatusOr<Snapshot> taken, bool full) {
  const SteadyTime now = Clock::now();
  last_status_ = taken.status();
  done_ = started_;
  if (!taken.ok()) {
    ++failures_;
  } else {
    const auto latest = std::make_shared<const Snapshot>(*std::move(taken));
    latest_ = latest;
    if (full) {
      latest_full_ = latest;
      full_taken_ = now;
    } else {
      latest_full_.reset();
    }
    std::erase_if(watches_, [&](const auto& weak) {
      auto watch = weak.lock();
      if (watch) watch->Offer(latest, now);
      return watch == nullptr;
    });
  }
  sampled_.NotifyAll();
}

}  // namespace memtuned
