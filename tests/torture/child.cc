// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "absl/strings/str_cat.h"

namespace memtuned::torture {
namespace {

void Require(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

int RunProgram(const std::vector<std::string>& arguments,
               const std::string& output) {
  const int fd =
      open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) {
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "%s: %s\n", argv[0], std::strerror(errno));
  return 127;
}

}  // namespace

Child Child::Fork(const std::function<int()>& body) {
  const pid_t parent = getpid();
  Child child;
  child.pid_ = fork();
  Require(child.pid_ >= 0, "fork");
  if (child.pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 99;
    try {
      if (getppid() == parent) code = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "memtuned-torture: in a child: %s\n", e.what());
    }
    _exit(code);
  }
  child.pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, child.pid_, 0));
  Require(child.pidfd_ >= 0, "pidfd_open");
  return child;
}

Child Child::Exec(const std::vector<std::string>& arguments,
                  const std::string& output) {
  return Fork([&] { return RunProgram(arguments, output); });
}

Child::~Child() {
  if (alive()) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pidfd_ >= 0) close(pidfd_);
}

void Child::Signal(int signal) const {
  if (!alive()) return;
  syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0);
}

std::optional<int> Child::TryWait() {
  int status = 0;
  if (!alive() || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

std::optional<int> Child::Wait(int timeout_ms) {
  pollfd entry = {pidfd_, POLLIN, 0};
  if (!alive() || poll(&entry, 1, timeout_ms) <= 0) return std::nullopt;
  return TryWait();
}

std::string DescribeStatus(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return absl::StrCat("status ", WEXITSTATUS(wait_status));
  }
  return absl::StrCat("signal ", WTERMSIG(wait_status), " (",
                      strsignal(WTERMSIG(wait_status)), ")");
}

}  // namespace memtuned::torture
