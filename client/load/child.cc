// SPDX-License-Identifier: Apache-2.0
#include "client/load/child.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "client/attach/pool_state.h"
#include "client/load/shapes.h"

namespace memtuned::load {
namespace {

using std::chrono::milliseconds;

class Child {
 public:
  Child(const LoadConfig& config, uint32_t process, SharedState& state)
      : config_(config),
        process_(process),
        state_(state),
        board_(state.board()) {}

  int Run() {
    auto pool = Pool::Attach(config_.socket_path);
    if (!pool) {
      board_.SetError(process_, pool.error().message());
      return 1;
    }
    if (process_ == 0) pool->name().copy(board_.pool_name.data(), 47);
    ++board_.attached;
    CountIn(Phase::kCounting, *pool);
    if (!StartThreads(*pool)) return 1;
    while (running_ > 0) {
      // For the progress line.
      if (process_ == 0 && board_.phase == Phase::kRunning) Count(*pool);
      std::this_thread::sleep_for(milliseconds(running_ > 0 ? 20 : 0));
    }
    for (std::thread& thread : threads_) thread.join();
    if (failed_) return 1;
    ++board_.finished;
    CountIn(Phase::kCountingAgain, *pool);
    WaitFor(Phase::kFinished);
    return 0;
  }

 private:
  void WaitFor(Phase phase) {
    while (board_.phase < phase) std::this_thread::sleep_for(milliseconds(1));
  }

  void Count(const Pool& pool) {
    board_.counters.Store(ReadCounters(*pool.handle()->segment));
  }

  void CountIn(Phase phase, const Pool& pool) {
    WaitFor(phase);
    if (process_ != 0) return;
    Count(pool);
    ++board_.counted;
  }

  // A pair is two threads of one process, or the threads of one number in two
  // processes.
  Worker MakeWorker(Pool& pool, uint32_t thread) {
    const uint32_t number = process_ * config_.threads + thread;
    Ring* ring = nullptr;
    bool produces = false;
    if (config_.between_processes()) {
      ring = &state_.ring(process_ / 2 * config_.threads + thread);
      produces = process_ % 2 == 0;
    } else if (config_.shape == Shape::kProducerConsumer) {
      ring = &state_.ring(number / 2);
      produces = number % 2 == 0;
    }
    return {config_, pool, board_.phase, board_.workers[number],
            number,  ring, produces};
  }

  void RunWorker(Pool& pool, uint32_t thread) {
    Worker worker = MakeWorker(pool, thread);
    WaitFor(Phase::kRunning);
    std::string error;
    try {
      error = Work(worker);
    } catch (const std::exception& e) {
      error = std::string("worker: ") + e.what();
    }
    if (!error.empty()) {
      std::lock_guard<std::mutex> lock(mutex_);
      board_.SetError(process_, error);
      failed_ = true;
    }
    --running_;
  }

  bool StartThreads(Pool& pool) {
    try {
      for (uint32_t t = 0; t < config_.threads; ++t) {
        ++running_;
        threads_.emplace_back([this, &pool, t] { RunWorker(pool, t); });
      }
      return true;
    } catch (const std::exception& e) {
      board_.SetError(process_, std::string("thread: ") + e.what());
      // Those that run wait for a phase; the process ends under them.
      _exit(1);
    }
  }

  const LoadConfig& config_;
  const uint32_t process_;
  SharedState& state_;
  Board& board_;
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> running_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // for the process's error on the board
};

}  // namespace

int RunChild(const LoadConfig& config, uint32_t process, SharedState& state) {
  return Child(config, process, state).Run();
}

}  // namespace memtuned::load
