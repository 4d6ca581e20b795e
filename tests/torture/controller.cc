// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/controller.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/attach/pool_state.h"
#include "client/load/random.h"
#include "core/base/env.h"
#include "tests/torture/daemon_killer.h"
#include "tests/torture/daemon_process.h"
#include "tests/torture/durations.h"
#include "tests/torture/final_check.h"
#include "tests/torture/graveyard.h"
#include "tests/torture/machine.h"
#include "tests/torture/report.h"
#include "tests/torture/sabotage.h"
#include "tests/torture/worker_process.h"
#include "tests/torture/workers.h"

namespace memtuned::torture {
namespace {

constexpr uint64_t kNever = ~uint64_t{0};

class Controller {
 public:
  Controller(const Options& options, Board& board, DaemonProcess& daemon,
             Pool& pool)
      : options_(options),
        board_(board),
        daemon_(daemon),
        pool_(pool),
        random_(options.seed, 0),
        workers_(options, board, *pool.handle()->segment, daemon.pool_socket()),
        graveyard_(*pool.handle()->segment, board),
        daemon_killer_(daemon, board, options.seed) {}

  void Run() {
    for (uint32_t i = 0; i < workers_.size(); ++i) workers_.Start(i);
    const uint64_t stolen = StolenMs();
    const uint64_t start = env::NowNs();
    const auto length = static_cast<uint64_t>(options_.seconds * 1e9);
    ScheduleFirst(start);
    while (!g_asked_to_end.load() && board_.nr_faults() == 0) {
      const uint64_t now = env::NowNs();
      if (now - start >= length) break;
      Act(now);
      Wait();
    }
    figures_.seconds = static_cast<double>(env::NowNs() - start) / 1e9;
    figures_.stolen_ms = StolenMs() - stolen;
    Continue(env::NowNs());
  }

  void Finish() {
    LookAtDaemon();
    if (options_.kill_daemon) CheckDaemonIsBack();
    workers_.EndAll();
    while (!graveyard_.empty()) {
      graveyard_.Look();
      env::SpinPause(1000);
    }
    if (options_.sabotage == Sabotage::kLeak) (void)pool_.Allocate(0);
    CheckPoolAtRest(pool_, daemon_, board_);
  }

  Figures TakeFigures() {
    figures_.reap_times = graveyard_.reap_times();
    figures_.death_times = graveyard_.death_times();
    figures_.daemon_kills = daemon_killer_.kills();
    figures_.daemon_kills_at_start = daemon_killer_.kills_at_start();
    figures_.totals = board_.Sum();
    figures_.storm_attaches =
        board_.Sum(options_.workers, options_.processes()).attaches;
    figures_.reclaimed_pages = daemon_.ReclaimedPages();
    return figures_;
  }

 private:
  void ScheduleFirst(uint64_t now) {
    if (options_.kill_every_ms != 0) next_kill_ = now + DrawKillInterval();
    if (options_.stop) next_stop_ = now + Draw(5, 50);
    if (options_.kill_daemon) daemon_killer_.Begin(now);
    next_look_ = now;
  }

  uint64_t Draw(uint32_t from_ms, uint32_t to_ms) {
    return random_.Between(from_ms * 1000, to_ms * 1000) * 1000ull;
  }
  uint64_t DrawKillInterval() {
    const uint32_t mean = options_.kill_every_ms;
    return random_.Between(mean * 500, mean * 1500) * 1000ull;
  }

  void Act(uint64_t now) {
    board_.steal_log.Look(now);
    if (now >= next_kill_) {
      KillOne(now);
      // A late one is not made up for: the machine is busy as it is.
      next_kill_ = now + DrawKillInterval();
    }
    if (now >= next_stop_) StopOne(now);
    if (now >= stop_ends_) Continue(now);
    daemon_killer_.Act(now);
    if (now >= next_look_) {
      workers_.LookForFaults();
      LookAtDaemon();
      next_look_ = now + 50 * kMillisecond;
    }
    graveyard_.Look();
  }

  // Anybody, but for those who wait too long: that they do must come out.
  void KillOne(uint64_t now) {
    const uint32_t first = random_.Between(0, workers_.size() - 1);
    for (uint32_t i = 0; i < workers_.size(); ++i) {
      const uint32_t slot = (first + i) % workers_.size();
      const bool stopped = stopped_ == slot;
      if (!stopped && workers_.InCallFor(slot, options_.max_wait_ns())) {
        ++figures_.spared;
        continue;
      }
      graveyard_.Bury(workers_.Kill(slot));
      ++figures_.kills;
      if (stopped) Continue(now);
      return;
    }
  }

  void StopOne(uint64_t now) {
    stopped_ = random_.Between(0, workers_.size() - 1);
    board_.BeginStop(*stopped_, now);
    workers_.Signal(*stopped_, SIGSTOP);
    ++figures_.stops;
    stop_ends_ = now + Draw(5, 300);
    next_stop_ = kNever;
  }

  void Continue(uint64_t now) {
    if (!stopped_) return;
    workers_.Signal(*stopped_, SIGCONT);
    board_.EndStop(env::NowNs());
    stopped_.reset();
    stop_ends_ = kNever;
    next_stop_ = now + Draw(5, 50);
  }

  void LookAtDaemon() {
    if (const auto status = daemon_.TryWait()) {
      board_.Report(Fault::kDeath,
                    absl::StrCat("memtuned ended by itself with ",
                                 DescribeStatus(*status)));
    }
  }

  void CheckDaemonIsBack() {
    const std::string problem = daemon_.WaitUntilReady();
    if (!problem.empty()) board_.Report(Fault::kDeath, problem);
  }

  // Until somebody ends or there is something to do. A slot that becomes free
  // is no event: it is looked for.
  void Wait() {
    std::vector<pollfd> polled;
    workers_.AddTo(polled);
    graveyard_.AddTo(polled);
    const uint64_t now = env::NowNs();
    const uint64_t next =
        std::min({next_kill_, next_stop_, stop_ends_, daemon_killer_.next_ns(),
                  next_look_, now + StealLog::kEveryNs});
    uint64_t left = next > now ? next - now : 0;
    if (graveyard_.waits_for_daemon()) {
      left = std::min(left, kMillisecond / 10);
    }
    const timespec time = {static_cast<time_t>(left / kSecond),
                           static_cast<long>(left % kSecond)};
    ppoll(polled.data(), polled.size(), &time, nullptr);
  }

  const Options& options_;
  Board& board_;
  DaemonProcess& daemon_;
  Pool& pool_;
  load::Random random_;
  Workers workers_;
  Graveyard graveyard_;
  DaemonKiller daemon_killer_;
  Figures figures_;
  uint64_t next_kill_ = kNever, next_stop_ = kNever, stop_ends_ = kNever,
           next_look_ = 0;
  std::optional<uint32_t> stopped_;  // slot
};

std::string PoolText(const Options& options) {
  const char* comma = options.pool_settings.empty() ? "" : ",";
  return absl::StrCat(options.pool_mib, "MiB", comma, options.pool_settings);
}

// Returns: nullopt after it said why.
std::optional<Pool> AttachToWholePool(DaemonProcess& daemon) {
  if (const std::string problem = daemon.WaitUntilReady(); !problem.empty()) {
    std::cerr << "memtuned-torture: " << problem << "\n" << daemon.LogTail();
    return std::nullopt;
  }
  auto pool = Pool::Attach(daemon.pool_socket());
  if (!pool) {
    std::cerr << "memtuned-torture: " << pool.error().message() << "\n";
    return std::nullopt;
  }
  // Making a section may take longer than a call that is judged.
  const uint64_t give_up = env::NowNs() + 120000 * kMillisecond;
  while (!pool->handle()->segment->Initialised()) {
    if (env::NowNs() > give_up) {
      std::cerr << "memtuned-torture: the pool is not initialised in 120 s\n";
      return std::nullopt;
    }
    env::SpinPause(1000);
  }
  return *std::move(pool);
}

int Judge(const Options& options, const Board& board,
          const DaemonProcess& daemon) {
  for (const std::string& text : board.FaultTexts()) {
    std::cerr << "memtuned-torture: " << text << "\n";
  }
  if (options.sabotage != Sabotage::kNone) {
    const bool found = board.Has(FaultOf(options.sabotage));
    std::cout << "self-test: the fault was " << (found ? "" : "not ")
              << "found\n";
    return found ? 0 : 1;
  }
  if (board.nr_faults() == 0) return 0;
  std::cerr << "memtuned-torture: memtuned's log ends with\n"
            << daemon.LogTail();
  return 1;
}

}  // namespace

int Torture(const Options& options) {
  signal(SIGINT, AskToEnd);
  signal(SIGTERM, AskToEnd);  // workers inherit it
  if (!TellsRunQueueDelay()) {
    std::cerr << "memtuned-torture: this kernel has no run-queue delay in "
                 "/proc/PID/schedstat; waits cannot be judged\n";
    return 1;
  }
  Board& board = *Board::Create();
  DaemonProcess daemon(options.bin_dir, PoolText(options), options.topology);
  daemon.Start();
  {
    auto pool = AttachToWholePool(daemon);
    if (!pool) return 1;
    Controller controller(options, board, daemon, *pool);
    controller.Run();
    controller.Finish();
    PrintFigures(options, controller.TakeFigures(), board,
                 *pool->handle()->segment, std::cout);
  }
  if (const std::string problem = daemon.Stop(); !problem.empty()) {
    board.Report(Fault::kDeath, problem);
  }
  return Judge(options, board, daemon);
}

}  // namespace memtuned::torture
