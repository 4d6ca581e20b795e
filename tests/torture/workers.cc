// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/workers.h"

#include <signal.h>
#include <sys/wait.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/env.h"
#include "tests/torture/durations.h"
#include "tests/torture/lock_report.h"
#include "tests/torture/worker.h"

namespace memtuned::torture {
namespace {

// Far beyond what a stopped process or a busy machine explains.
constexpr uint64_t kHangNs = 5 * kSecond;
constexpr uint64_t kNoProgressNs = 15 * kSecond;
constexpr uint64_t kEndPatience = 30 * kSecond;

}  // namespace

Workers::Workers(const Options& options, Board& board, const Segment& segment,
                 std::string socket_path)
    : options_(options),
      board_(board),
      segment_(segment),
      socket_path_(std::move(socket_path)),
      children_(options.processes()),
      progress_ns_(env::NowNs()) {}

void Workers::Start(uint32_t slot) {
  const WorkerId id{slot, next_serial_++};
  children_[slot] = Child::Fork([this, id] {
    WorkerSlot& line = board_.workers[id.slot];
    line.state = WorkerState::kAttaching;
    // Of the killed that was here before.
    for (ThreadLine& thread : line.threads) thread.call_start_ns = 0;
    const auto run = id.slot < options_.workers ? RunWorker : RunStormWorker;
    return run(options_, board_, id, socket_path_);
  });
}

Child Workers::Kill(uint32_t slot) {
  Child killed = std::move(children_[slot]);
  killed.Signal(SIGKILL);
  Start(slot);
  return killed;
}

bool Workers::InCallFor(uint32_t slot, uint64_t ns) const {
  const uint64_t now = env::NowNs();
  for (const ThreadLine& thread : board_.workers[slot].threads) {
    const uint64_t start = thread.call_start_ns.load();
    if (start != 0 && now > start + ns) return true;
  }
  return false;
}

void Workers::AddTo(std::vector<pollfd>& polled) const {
  for (const Child& child : children_) {
    if (child.alive()) polled.push_back({child.pidfd(), POLLIN, 0});
  }
}

void Workers::ReportEnd(uint32_t slot, int wait_status) {
  // It has said itself why it ended like this.
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kFaultExit &&
      board_.nr_faults() != 0) {
    return;
  }
  board_.Report(Fault::kDeath, absl::StrCat("the worker in slot ", slot,
                                            " ended by itself with ",
                                            DescribeStatus(wait_status)));
}

void Workers::ReportHang(const std::string& what) {
  board_.Report(Fault::kHang,
                board_.Has(Fault::kHang)
                    ? what
                    : absl::StrCat(what, "; ", DescribeHeldLocks(segment_)));
}

std::string Workers::Name(uint32_t slot) const {
  return absl::StrCat("the worker in slot ", slot, " (pid ",
                      children_[slot].pid(), ")");
}

void Workers::LookForFaults() {
  for (uint32_t slot = 0; slot < size(); ++slot) {
    if (auto status = children_[slot].TryWait()) ReportEnd(slot, *status);
    if (InCallFor(slot, kHangNs)) {
      ReportHang(absl::StrCat(Name(slot),
                              " is in one call of the pool for over ",
                              kHangNs / kSecond, " s"));
      return;
    }
  }
  const uint64_t now = env::NowNs();
  const uint64_t operations = board_.Sum().operations();
  if (operations != operations_) {
    operations_ = operations;
    progress_ns_ = now;
  } else if (now - progress_ns_ > kNoProgressNs) {
    ReportHang(absl::StrCat("no worker got anywhere for ",
                            kNoProgressNs / kSecond, " s"));
  }
}

void Workers::EndAll() {
  for (Child& child : children_) child.Signal(SIGTERM);
  // After a fault some may never end.
  const uint64_t give_up =
      env::NowNs() + (board_.nr_faults() == 0 ? kEndPatience : 3 * kSecond);
  for (uint32_t slot = 0; slot < size(); ++slot) {
    Child& child = children_[slot];
    if (!child.alive()) continue;
    const uint64_t now = env::NowNs();
    const uint64_t left = give_up > now ? (give_up - now) / kMillisecond : 0;
    const auto status = child.Wait(static_cast<int>(left));
    if (!status) {
      ReportHang(Name(slot) + " did not end when asked to");
      child = Child();  // killed
    } else if (*status != 0) {
      ReportEnd(slot, *status);
    }
  }
}

}  // namespace memtuned::torture
