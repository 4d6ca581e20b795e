// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/worker.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/env.h"
#include "tests/torture/actor.h"
#include "tests/torture/durations.h"
#include "tests/torture/sabotage.h"
#include "tests/torture/slices.h"

namespace memtuned::torture {
namespace {

// How long attaching may fail for reasons that pass.
constexpr uint64_t kAttachPatience = 10 * kSecond;

// Nobody listens while the daemon is dead; slots run short in a storm until
// the daemon has seen who left.
bool MayPass(const Options& options, memtuned_status status) {
  return (status == MEMTUNED_UNAVAILABLE && options.kill_daemon) ||
         (status == MEMTUNED_POOL_FULL && options.storm != 0);
}

// Returns: nullopt when it was asked to end meanwhile.
std::optional<Pool> Attach(const Options& options, Board& board, WorkerId id,
                           const std::string& socket_path) {
  ThreadLine& line = board.workers[id.slot].threads[0];
  const uint64_t give_up = env::NowNs() + kAttachPatience;
  while (!g_asked_to_end.load()) {
    auto pool = Pool::Attach(socket_path, std::chrono::seconds(10));
    if (pool) {
      Count(line.attaches);
      return *std::move(pool);
    }
    if (!MayPass(options, pool.error().status()) || env::NowNs() > give_up) {
      board.Report(Fault::kAttach, absl::StrCat("worker ", id.serial, " (slot ",
                                                id.slot, ", pid ", getpid(),
                                                "): ", pool.error().message()));
      _exit(kFaultExit);
    }
    Count(line.refused_attaches);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return std::nullopt;
}

// Some blocks are given back, the daemon finds the others.
void VisitPool(WorkerProcess& process, Random& random) {
  Slice slice(env::NowNs() + kSecond);
  Actor actor(process, 0, slice);
  for (uint32_t blocks = random.Between(0, 4); blocks > 0; --blocks) {
    const int order = static_cast<int>(random.Between(0, 3));
    void* block = actor.Allocate(order);
    if (block == nullptr) return;
    if (random.Between(0, 1) == 0) actor.Free(block, order);
  }
}

}  // namespace

int RunWorker(const Options& options, Board& board, WorkerId id,
              const std::string& socket_path) {
  signal(SIGINT, SIG_IGN);  // the controller's to act on
  WorkerSlot& line = board.workers[id.slot];
  auto pool = Attach(options, board, id, socket_path);
  if (pool) {
    line.state = WorkerState::kRunning;
    WorkerProcess process(options, board, id, *pool);
    Random random(options.seed, id.serial);
    while (!g_asked_to_end.load()) {
      Commit(options.sabotage, process, random);
      RunSlice(process, random);
    }
    line.state = WorkerState::kLeaving;
  }
  pool.reset();
  line.state = WorkerState::kFinished;
  return 0;
}

int RunStormWorker(const Options& options, Board& board, WorkerId id,
                   const std::string& socket_path) {
  signal(SIGINT, SIG_IGN);  // the controller's to act on
  WorkerSlot& line = board.workers[id.slot];
  Random random(options.seed, id.serial);
  const std::chrono::nanoseconds interval(kSecond * kStormWorkers /
                                          options.storm);
  auto next = std::chrono::steady_clock::now();
  while (!g_asked_to_end.load()) {
    line.state = WorkerState::kAttaching;
    auto pool = Attach(options, board, id, socket_path);
    if (!pool) break;
    line.state = WorkerState::kRunning;
    WorkerProcess process(options, board, id, *pool);
    VisitPool(process, random);
    line.state = WorkerState::kLeaving;
    pool.reset();
    // Behind time it does not sleep, but catches up with no more than that.
    const auto now = std::chrono::steady_clock::now();
    next = std::max(next + interval, now - std::chrono::milliseconds(100));
    if (next > now) std::this_thread::sleep_until(next);
  }
  line.state = WorkerState::kFinished;
  return 0;
}

}  // namespace memtuned::torture
