// SPDX-License-Identifier: Apache-2.0
// A function call in a child process.
#include "daemon/host/isolated_call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

constexpr size_t kMaxDiagnostics = 4096;
constexpr rlim_t kChildMemoryBytes = rlim_t{4} << 30;
constexpr char kEndMark = '.';  // after the output: it is whole

using Clock = std::chrono::steady_clock;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&&) = delete;
  ~Fd() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct Pipe {
  Fd read_end;
  Fd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) == 0) return Pipe{Fd(fds[0]), Fd(fds[1])};
  return absl::ResourceExhaustedError(
      absl::StrCat("no pipe for a child process: ", std::strerror(errno)));
}

void LimitChild() {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  unsigned long pages = 0;  // NOLINT(google-runtime-int): scanf's %lu
  if (FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  rlimit memory;
  if (pages == 0 || getrlimit(RLIMIT_AS, &memory) != 0) return;
  const rlim_t wanted =
      rlim_t{pages} * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) +
      kChildMemoryBytes;
  memory.rlim_cur = std::min(memory.rlim_max, wanted);
  setrlimit(RLIMIT_AS, &memory);
}

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void RunChild(const std::function<std::string()>& work,
                           int output_fd, int diagnostics_fd) {
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE}) {
    std::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(diagnostics_fd, STDERR_FILENO);
  LimitChild();
  WriteAll(output_fd, work() + kEndMark);
  _exit(0);
}

// Appends what there is to read, at most `limit` bytes in all; what is beyond
// is dropped. False at the end of the pipe.
bool Drain(int fd, size_t limit, std::string* text) {
  char buffer[16 * 1024];
  const ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n < 0) return errno == EINTR;
  const size_t room = limit - std::min(limit, text->size());
  text->append(buffer, std::min(static_cast<size_t>(n), room));
  return n > 0;
}

// Reads both pipes until the child closed them. False when time is up.
bool ReadUntilEnd(int output_fd, int diagnostics_fd, Clock::time_point end,
                  IsolatedResult* result) {
  pollfd fds[2] = {{output_fd, POLLIN, 0}, {diagnostics_fd, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    if (left.count() <= 0) return false;
    const int ready = poll(fds, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (fds[0].revents != 0 &&
        !Drain(fds[0].fd, kMaxIsolatedOutput + 1, &result->output)) {
      fds[0].fd = -1;
    }
    if (fds[1].revents != 0 &&
        !Drain(fds[1].fd, kMaxDiagnostics, &result->diagnostics)) {
      fds[1].fd = -1;
    }
  }
  return true;
}

std::string FailureOf(pid_t child) {
  int status = 0;
  pid_t waited;
  do {
    waited = waitpid(child, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited == child && WIFSIGNALED(status)) {
    return absl::StrCat("crashed (signal ", WTERMSIG(status), ")");
  }
  if (waited == child && WEXITSTATUS(status) != 0) {
    return absl::StrCat("failed (exit code ", WEXITSTATUS(status), ")");
  }
  return "";
}

}  // namespace

absl::StatusOr<IsolatedResult> CallIsolated(
    const std::function<std::string()>& work,
    std::chrono::milliseconds deadline) {
  absl::StatusOr<Pipe> output = MakePipe();
  if (!output.ok()) return output.status();
  absl::StatusOr<Pipe> diagnostics = MakePipe();
  if (!diagnostics.ok()) return diagnostics.status();
  const pid_t child = fork();
  if (child < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no child process: ", std::strerror(errno)));
  }
  if (child == 0) {
    RunChild(work, output->write_end.get(), diagnostics->write_end.get());
  }
  output->write_end.Close();
  diagnostics->write_end.Close();

  IsolatedResult result;
  const bool in_time =
      ReadUntilEnd(output->read_end.get(), diagnostics->read_end.get(),
                   Clock::now() + deadline, &result);
  if (!in_time) kill(child, SIGKILL);
  result.failure = FailureOf(child);
  const bool whole = !result.output.empty() &&
                     result.output.size() <= kMaxIsolatedOutput &&
                     result.output.back() == kEndMark;
  if (!in_time) {
    result.failure = absl::StrCat("took over ", deadline.count(), " ms");
  } else if (result.failure.empty() && !whole) {
    result.failure = "gave no whole result";
  }
  if (result.failure.empty()) {
    result.output.pop_back();
  } else {
    result.output.clear();
  }
  return result;
}

}  // namespace memtuned
