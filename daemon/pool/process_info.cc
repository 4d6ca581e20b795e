// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/process_info.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/base/thread_state.h"

namespace memtuned {

uint32_t ParentOf(uint32_t pid) {
  // Counted after the command, which may hold anything.
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(text.substr(end + 1));
  std::string state;
  uint32_t parent = 0;
  fields >> state >> parent;
  return parent;
}

std::string CommandOf(const std::string& proc_root, uint32_t pid) {
  std::ifstream file(absl::StrCat(proc_root, "/", pid, "/comm"));
  std::string command;
  std::getline(file, command);
  return command;
}

absl::StatusOr<FileDescriptor> OpenProcess(uint32_t pid, uint64_t start_time) {
  FileDescriptor pidfd(
      static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (pidfd.get() < 0) {
    // EINVAL: no number of a process.
    return errno == ESRCH || errno == EINVAL
               ? absl::NotFoundError(absl::StrCat("no process ", pid))
               : absl::ErrnoToStatus(errno, "pidfd_open");
  }
  // Read after it was opened: whoever has the pid now is the one that is open.
  const uint64_t started = StartTimeOf(pid);
  if (start_time != 0 && started != 0 && started != start_time) {
    return absl::NotFoundError(
        absl::StrCat("process ", pid, " is another one now"));
  }
  return pidfd;
}

}  // namespace memtuned
