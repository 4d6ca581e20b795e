// SPDX-License-Identifier: Apache-2.0
// Runs a function in a forked child; its return value is the exit code.
#ifndef MEMTUNED_TESTS_CLIENT_ATTACH_CHILD_PROCESS_H_
#define MEMTUNED_TESTS_CLIENT_ATTACH_CHILD_PROCESS_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

// In a child: says where and returns 1 unless `condition` holds.
#define CHILD_CHECK(condition)                                                 \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: failed in child: %s\n", __FILE__, __LINE__, \
                   #condition);                                                \
      return 1;                                                                \
    }                                                                          \
  } while (false)

namespace memtuned::test {

class ChildProcess {
 public:
  template <typename Function>
  explicit ChildProcess(Function function) : pid_(fork()) {
    if (pid_ != 0) return;
    int code = 99;
    try {
      code = function();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "exception in child: %s\n", e.what());
    }
    _exit(code);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { Wait(); }

  pid_t pid() const { return pid_; }
  // Returns: the exit code, 128 + signal when it was killed.
  int Wait() {
    int status = 0;
    if (pid_ <= 0) return code_;
    if (waitpid(pid_, &status, 0) == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    pid_ = -1;
    return code_;
  }

 private:
  pid_t pid_;
  int code_ = -1;
};

template <typename Function>
int RunInChild(Function function) {
  return ChildProcess(function).Wait();
}

}  // namespace memtuned::test

#endif  // MEMTUNED_TESTS_CLIENT_ATTACH_CHILD_PROCESS_H_
