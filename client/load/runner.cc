// SPDX-License-Identifier: Apache-2.0
#include "client/load/runner.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include "client/load/child.h"
#include "client/load/report.h"

namespace memtuned::load {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Attaching has a deadline of its own; freeing what is held takes moments.
constexpr std::chrono::seconds kPatience(30);

volatile sig_atomic_t g_interrupted = 0;
void OnSignal(int) { g_interrupted = 1; }

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // A second signal ends the program at once.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

class Runner {
 public:
  Runner(const LoadConfig& config, SharedState& state, std::ostream& log)
      : config_(config), state_(state), board_(state.board()), log_(log) {}
  ~Runner() {
    for (Process& process : processes_) {
      if (process.pid <= 0) continue;
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
  }

  std::optional<RunResult> Run() {
    if (!StartProcesses()) return std::nullopt;
    RunResult result;
    if (!Until([&] { return board_.attached == config_.processes; },
               "attach to the pool") ||
        !CountIn(Phase::kCounting, 1)) {
      return std::nullopt;
    }
    const PoolCounters before = board_.counters.Load();
    if (!Measure(before, &result)) return std::nullopt;
    if (!Until([&] { return board_.finished == config_.processes; },
               "free what they hold") ||
        !CountIn(Phase::kCountingAgain, 2)) {
      return std::nullopt;
    }
    result.pool = board_.pool_name.data();
    result.counters = Delta(board_.counters.Load(), before);
    result.totals = board_.Sum(config_.workers());
    result.allocated_pages = result.totals.allocations << config_.order;
    result.interrupted = g_interrupted != 0;
    board_.phase = Phase::kFinished;
    if (!Until([&] { return running_ == 0; }, "end")) return std::nullopt;
    return result;
  }

 private:
  struct Process {
    pid_t pid = -1;  // -1 once it was waited for
  };

  bool StartProcesses() {
    log_.flush();
    std::cout.flush();
    const pid_t parent = getpid();
    for (uint32_t i = 0; i < config_.processes; ++i) {
      const pid_t pid = fork();
      if (pid < 0) {
        log_ << "memtune-load: fork: " << std::strerror(errno) << "\n";
        return false;
      }
      if (pid == 0) {
        // The terminal's SIGINT is the parent's to act on.
        signal(SIGINT, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        _exit(RunChild(config_, i, state_));
      }
      processes_.push_back({pid});
      ++running_;
    }
    return true;
  }

  // Waits for a condition, while nobody fails.
  bool Until(const std::function<bool()>& done, const char* what) {
    const auto end = Clock::now() + kPatience;
    while (!done()) {
      if (!Reap()) return false;
      if (Clock::now() > end) {
        log_ << "memtune-load: the processes did not " << what << " within "
             << kPatience.count() << " s\n";
        return false;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  bool CountIn(Phase phase, uint32_t times) {
    board_.phase = phase;
    return Until([&] { return board_.counted == times; },
                 "read the pool's counters");
  }

  // Returns: false when a process ended that should not have, or with an
  // error.
  bool Reap() {
    bool fine = true;
    for (uint32_t i = 0; i < processes_.size(); ++i) {
      Process& process = processes_[i];
      int status = 0;
      if (process.pid <= 0 ||
          waitpid(process.pid, &status, WNOHANG) != process.pid) {
        continue;
      }
      const pid_t pid = std::exchange(process.pid, -1);
      --running_;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      fine = false;
      log_ << "memtune-load: process " << i << " (pid " << pid << "): ";
      if (WIFSIGNALED(status)) {
        log_ << "killed by signal " << WTERMSIG(status) << " ("
             << strsignal(WTERMSIG(status)) << ")\n";
      } else {
        log_ << board_.errors[i].data() << "\n";
      }
    }
    return fine;
  }

  bool Measure(const PoolCounters& before, RunResult* result) {
    const auto start = Clock::now();
    const auto end =
        start + std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(config_.seconds));
    board_.phase = Phase::kRunning;
    auto next_line = start + std::chrono::seconds(1);
    Totals last;
    while (g_interrupted == 0) {
      const auto now = Clock::now();
      if (now >= end) break;
      if (!Reap()) return false;
      if (config_.progress && now >= next_line) {
        const Totals totals = board_.Sum(config_.workers());
        PrintProgress(std::chrono::duration<double>(now - start).count(),
                      totals.operations() - last.operations(), totals,
                      Delta(board_.counters.Load(), before), config_, log_);
        last = totals;
        next_line += std::chrono::seconds(1);
      }
      std::this_thread::sleep_for(
          std::min<Clock::duration>(milliseconds(20), end - now));
    }
    result->at_stop = board_.Sum(config_.workers());
    result->seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    board_.phase = Phase::kStopping;
    return true;
  }

  const LoadConfig& config_;
  SharedState& state_;
  Board& board_;
  std::ostream& log_;
  std::vector<Process> processes_;
  uint32_t running_ = 0;
};

}  // namespace

double RunResult::operations_per_second() const {
  return seconds > 0 ? static_cast<double>(at_stop.operations()) / seconds : 0;
}

double RunResult::lock_acquisitions_per_page() const {
  return allocated_pages == 0
             ? 0
             : static_cast<double>(counters[kZoneLockAcquisitions]) /
                   static_cast<double>(allocated_pages);
}

std::optional<RunResult> Run(const LoadConfig& config, std::ostream& log) {
  auto state = SharedState::Create(config);
  if (state == nullptr) {
    log << "memtune-load: shared memory: " << std::strerror(errno) << "\n";
    return std::nullopt;
  }
  HandleSignals();
  return Runner(config, *state, log).Run();
}

}  // namespace memtuned::load
