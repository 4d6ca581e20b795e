// SPDX-License-Identifier: Apache-2.0
// A process that this one started, watched by its pidfd.
#ifndef MEMTUNED_TESTS_TORTURE_CHILD_H_
#define MEMTUNED_TESTS_TORTURE_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace memtuned::torture {

// Dies when the thread that forked it does. Killed and waited for when
// destroyed. Move only.
class Child {
 public:
  Child() = default;
  // Runs `body` in a fork of this process; what it returns is the status.
  // REQUIRES: this process has one thread.
  static Child Fork(const std::function<int()>& body);
  // Runs a program; what it prints is appended to `output`.
  static Child Exec(const std::vector<std::string>& arguments,
                    const std::string& output);
  ~Child();
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        pidfd_(std::exchange(other.pidfd_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(pidfd_, other.pidfd_);
    return *this;
  }

  bool alive() const { return pid_ > 0; }  // not yet waited for
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }

  // Never reaches another process that has the pid by now.
  void Signal(int signal) const;
  // Returns: the wait status when the process has ended; then it is gone.
  std::optional<int> TryWait();
  // Blocks: until it ends, at most `timeout_ms`.
  std::optional<int> Wait(int timeout_ms);

 private:
  pid_t pid_ = -1;
  int pidfd_ = -1;
};

// "status 1", "signal 11 (Segmentation fault)".
std::string DescribeStatus(int wait_status);

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_CHILD_H_
