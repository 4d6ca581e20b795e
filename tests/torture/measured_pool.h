// SPDX-License-Identifier: Apache-2.0
// A daemon with a pool to measure, and processes that die in it.
#ifndef MEMTUNED_TESTS_TORTURE_MEASURED_POOL_H_
#define MEMTUNED_TESTS_TORTURE_MEASURED_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/attach/include/memtuned/pool.h"
#include "client/attach/pool_state.h"
#include "tests/torture/child.h"
#include "tests/torture/daemon_process.h"
#include "tests/torture/options.h"

namespace memtuned::torture {

class MeasuredPool {
 public:
  // `size`: as the daemon has it; the pool's frames appear on first touch.
  // Returns: nullptr after it said why.
  static std::unique_ptr<MeasuredPool> Create(const Options& options,
                                              const std::string& size);
  ~MeasuredPool();

  Segment& segment() { return *pool_->handle()->segment; }
  uint64_t FreePages();

  // Starts a process that attaches, prepares, and then goes on with `then`,
  // after which it notes the time and waits to be killed.
  // Returns: when it has prepared; nullopt after it said that it could not.
  std::optional<Child> Start(const std::function<bool(Pool&)>& prepare,
                             const std::function<void(Pool&)>& then = {});
  // When the process started last was through, 0: not yet.
  uint64_t through_ns() const { return shared_->through_ns.load(); }
  // Waits until only this process is attached. Returns: false after 10 s, and
  // says so.
  bool WaitUntilAlone();

 private:
  enum class State : uint32_t { kPreparing, kPrepared, kFailed };
  // With the process that was started last.
  struct Shared {
    std::atomic<State> state{State::kPreparing};
    std::atomic<uint64_t> through_ns{0};
  };

  MeasuredPool(const Options& options, const std::string& size);

  DaemonProcess daemon_;
  std::optional<Pool> pool_;
  Shared* shared_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_MEASURED_POOL_H_
