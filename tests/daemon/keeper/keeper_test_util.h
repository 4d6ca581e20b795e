// SPDX-License-Identifier: Apache-2.0
// Real keepers and daemons that are killed, for tests of daemon/keeper.
#ifndef MEMTUNED_TESTS_DAEMON_KEEPER_KEEPER_TEST_UTIL_H_
#define MEMTUNED_TESTS_DAEMON_KEEPER_KEEPER_TEST_UTIL_H_

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "daemon/keeper/fd_store.h"

namespace memtuned {

// Waits until `condition`, at most ten seconds. Returns: whether it came.
template <typename Condition>
bool Soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

class KeeperFolder {
 public:
  KeeperFolder() {
    char path[] = "/tmp/memtuned-keeper-test.XXXXXX";
    path_ = mkdtemp(path);
  }
  ~KeeperFolder() {
    std::error_code error;  // a keeper may be removing its socket
    std::filesystem::remove_all(path_, error);
  }

  std::string socket() const { return path_ + "/keeper.sock"; }
  FdStoreOptions options() const { return {socket(), KEEPER_PROGRAM}; }
  bool HasSocket() const { return access(socket().c_str(), F_OK) == 0; }

  // The keeper that was just started; it may be about to get its name.
  pid_t NewKeeper() const {
    Soon([this] { return Keeper() != 0; });
    return Keeper();
  }
  // The keeper of this folder, 0 when there is none.
  pid_t Keeper() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0) continue;
      std::ifstream file(entry.path() / "cmdline");
      const std::string words((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
      if (words.find(socket()) != std::string::npos) return pid;
    }
    return 0;
  }
  size_t FdsOfKeeper() const {
    const std::filesystem::directory_iterator files(
        "/proc/" + std::to_string(Keeper()) + "/fd");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

 private:
  std::string path_;
};

// False also for one that ended and was not waited for.
inline bool Runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  return file.get() != std::ifstream::traits_type::eof();
}

// A memory file that says `text`.
inline int FileWith(const std::string& text) {
  const int fd = memfd_create("kept", MFD_CLOEXEC);
  return write(fd, text.data(), text.size()) < 0 ? -1 : fd;
}
inline std::string TextOf(const FileDescriptor& fd) {
  char text[64] = {};
  return pread(fd.get(), text, sizeof(text) - 1, 0) < 0 ? "unreadable" : text;
}
inline FileDescriptor PidfdOf(pid_t pid) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}
inline ino_t InodeOf(int fd) {
  struct stat file {};
  return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

// A process that runs `body`, says that it is done and waits to be killed: a
// daemon, or somebody attached. It has copies of all that is open by then.
class Victim {
 public:
  template <typename Body>
  explicit Victim(Body body) {
    int ready[2];
    if (pipe(ready) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      body();
      if (write(ready[1], "x", 1) != 1) _exit(9);
      for (;;) pause();
    }
    char byte;
    close(ready[1]);
    ready_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
  }
  ~Victim() { Kill(); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool ready_ = false;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_KEEPER_KEEPER_TEST_UTIL_H_
