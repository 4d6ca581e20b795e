// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/call_timer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/env.h"
#include "tests/torture/durations.h"

namespace memtuned::torture {
namespace {

constexpr uint64_t kLongCall = 5 * kMillisecond;
// A tick of the kernel is 10 ms.
constexpr uint64_t kAskHypervisorNs = 20 * kMillisecond;

uint64_t Minus(uint64_t a, uint64_t b) { return a - std::min(a, b); }

}  // namespace

CallTimer::CallTimer(Board& board, ThreadLine& line, uint32_t worker,
                     uint64_t max_wait_ns)
    : board_(board),
      line_(line),
      worker_(worker),
      max_wait_ns_(max_wait_ns),
      schedstat_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  line_.tid.store(static_cast<uint32_t>(gettid()));
}

CallTimer::~CallTimer() { close(schedstat_); }

// The second number: the first is the time it ran.
uint64_t CallTimer::RunQueueDelayNs() const {
  std::array<char, 96> text{};
  if (pread(schedstat_, text.data(), text.size() - 1, 0) <= 0) return 0;
  char* second = nullptr;
  std::strtoull(text.data(), &second, 10);
  return std::strtoull(second, nullptr, 10);
}

// The moment and the delay belong together unless the thread lost its CPU in
// between: then again.
void CallTimer::Rebase() {
  for (int tries = 0; tries < 3; ++tries) {
    base_ns_ = env::NowNs();
    base_delay_ns_ = RunQueueDelayNs();
    start_ns_ = env::NowNs();
    if (start_ns_ - base_ns_ < kMillisecond / 10) return;
  }
}

void CallTimer::Begin() {
  start_ns_ = env::NowNs();
  if (start_ns_ - base_ns_ > kMillisecond) Rebase();
  line_.call_start_ns.store(start_ns_, std::memory_order_relaxed);
}

uint64_t CallTimer::End(const char* call) {
  const uint64_t now = env::NowNs();
  if (now - start_ns_ > kLongCall) Judge(call, now);
  // Who is being judged is spared: a wait must come out.
  line_.call_start_ns.store(0, std::memory_order_relaxed);
  return now;
}

void CallTimer::Judge(const char* call, uint64_t now) {
  const uint64_t took = now - start_ns_;
  // Delay of before the call is not subtracted: at most the time since then.
  const uint64_t delay =
      Minus(RunQueueDelayNs() - base_delay_ns_, start_ns_ - base_ns_);
  bool was_stopped = false;
  const uint64_t stopped =
      board_.StoppedNs(worker_, start_ns_, now, &was_stopped);
  base_ns_ = 0;
  if (was_stopped) return;
  Raise(line_.longest_call_ns, took);
  uint64_t wait = Minus(took, delay);
  if (stopped != 0) {
    Raise(line_.longest_behind_stopped_ns, wait);
    wait = Minus(wait, stopped);
  }
  uint64_t stolen = 0;
  if (wait > kAskHypervisorNs) {
    stolen = board_.steal_log.StolenNs(start_ns_, now);
    wait = Minus(wait, stolen);
  }
  Raise(line_.longest_wait_ns, wait);
  if (wait <= max_wait_ns_) return;
  board_.Report(
      Fault::kWait,
      absl::StrCat(call, " of worker ", worker_, " took ", took / 1000,
                   " us, minus run-queue delay ", delay / 1000, " us, stops ",
                   stopped / 1000, " us and what a hypervisor took, ",
                   stolen / 1000, " us, it waited ", wait / 1000,
                   " us; allowed ", max_wait_ns_ / 1000, " us"));
}

}  // namespace memtuned::torture
