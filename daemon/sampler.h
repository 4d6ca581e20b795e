// SPDX-License-Identifier: Apache-2.0
// Takes a subject's snapshots in a thread of its own and keeps the latest.
// RPCs, metrics and watchers read that copy, so however many they are the
// subject is asked once an interval. Knows no RPC and no metrics.
#ifndef MEMTUNED_DAEMON_SAMPLER_H_
#define MEMTUNED_DAEMON_SAMPLER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/stats.h"
#include "daemon/subject.h"

namespace memtuned {

using SteadyTime = std::chrono::steady_clock::time_point;

struct SamplerOptions {
  // Time between two samples; 10 ms or more.
  std::chrono::milliseconds interval{1000};
  // How long after the last request for per-CPU rows samples stay full.
  std::chrono::milliseconds full_keep{5000};
  // Every sample is full: for per-CPU metrics.
  bool always_full = false;
};

// One watcher's bounded ring of snapshots. When the watcher is slow the
// oldest are dropped and counted.
//
// Thread safety: any thread.
class SnapshotWatch {
 public:
  static constexpr size_t kCapacity = 16;

  struct Event {
    std::shared_ptr<const Snapshot> snapshot;  // null: none within the wait
    int64_t missed = 0;  // dropped since the last event, before `snapshot`
    bool ended = false;  // the sampler ended all watches
  };

  explicit SnapshotWatch(std::chrono::nanoseconds min_interval)
      : min_interval_(min_interval) {}

  // Blocks: until a snapshot, the end, or `timeout`.
  Event Next(std::chrono::milliseconds timeout) EXCLUDES(mutex_);

 private:
  friend class Sampler;

  void Offer(std::shared_ptr<const Snapshot> snapshot, SteadyTime now)
      EXCLUDES(mutex_);
  void End() EXCLUDES(mutex_);

  const std::chrono::nanoseconds min_interval_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<const Snapshot>> ring_ GUARDED_BY(mutex_);
  int64_t missed_ GUARDED_BY(mutex_) = 0;
  bool ended_ GUARDED_BY(mutex_) = false;
  bool offered_ GUARDED_BY(mutex_) = false;
  SteadyTime last_offer_ GUARDED_BY(mutex_);
};

// Thread safety: any thread; one caller starts and stops it.
class Sampler {
 public:
  // `subject` outlives the sampler. `on_health` is called from the sampler's
  // thread whenever sampling starts or stops to work.
  Sampler(Subject* subject, SamplerOptions options,
          std::function<void(bool healthy)> on_health = nullptr);
  ~Sampler();

  // REQUIRES: called once.
  void Start();
  // Ends watches and waiting calls, joins the thread. May be called again.
  void Stop();
  // Every present and later watch ends; sampling goes on.
  void EndWatches() EXCLUDES(mutex_);
  // Takes effect at once.
  void SetInterval(std::chrono::milliseconds interval) EXCLUDES(mutex_);

  // Null before the first sample. May or may not hold per-CPU rows.
  std::shared_ptr<const Snapshot> Latest() const EXCLUDES(mutex_);

  // A snapshot with per-CPU rows, at most two intervals old. Asks the
  // sampler's thread for one if there is none.
  // Blocks: until then or `deadline`.
  // Errors: kDeadlineExceeded; kUnavailable when the sample failed or the
  // sampler stopped.
  absl::StatusOr<std::shared_ptr<const Snapshot>> LatestFull(
      SteadyTime deadline) EXCLUDES(mutex_);

  // Waits for a sample begun after this call, so that a caller who changed
  // something then reads it.
  // Returns: false when `deadline` came first or the sample failed.
  bool Refresh(SteadyTime deadline) EXCLUDES(mutex_);

  std::shared_ptr<SnapshotWatch> Watch(std::chrono::nanoseconds min_interval)
      EXCLUDES(mutex_);

  // How much later than it should the sampler's thread is: to begin a sample,
  // or to be done with the one it takes. Zero or less: it lives.
  std::chrono::nanoseconds Overdue() const EXCLUDES(mutex_);

  // Samples that failed, since the start; and why the last one did, empty
  // when it worked.
  int64_t failures() const EXCLUDES(mutex_);
  std::string last_error() const EXCLUDES(mutex_);

 private:
  void Run() EXCLUDES(mutex_);
  void TakeOne() EXCLUDES(mutex_);
  void PublishLocked(absl::StatusOr<Snapshot> taken, bool full)
      REQUIRES(mutex_);
  bool WaitForSampleLocked(int64_t number, SteadyTime deadline)
      REQUIRES(mutex_);

  Subject* const subject_;
  const SamplerOptions options_;
  const std::function<void(bool)> on_health_;

  mutable Mutex mutex_;
  CondVar wake_;     // the thread has something to do
  CondVar sampled_;  // a sample ended
  std::chrono::milliseconds interval_ GUARDED_BY(mutex_);
  // When the thread is to be heard of next.
  SteadyTime expected_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool watches_ended_ GUARDED_BY(mutex_) = false;
  // Samples are numbered from 1.
  int64_t started_ GUARDED_BY(mutex_) = 0;
  int64_t done_ GUARDED_BY(mutex_) = 0;
  int64_t requested_ GUARDED_BY(mutex_) = 1;
  SteadyTime full_wanted_until_ GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> latest_ GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> latest_full_ GUARDED_BY(mutex_);
  SteadyTime full_taken_ GUARDED_BY(mutex_);
  int64_t failures_ GUARDED_BY(mutex_) = 0;
  absl::Status last_status_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<SnapshotWatch>> watches_ GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_SAMPLER_H_
