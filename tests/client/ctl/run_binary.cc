// SPDX-License-Identifier: Apache-2.0
// Implementation of run_binary.h.
#include "tests/client/ctl/run_binary.h"

#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace memtuned::ctl {
namespace {

constexpr std::chrono::seconds kPatience{60};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// This process's environment with `changes`; plain locale, no target.
std::vector<std::string> Environment(
    const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  all["LC_ALL"] = "C";
  all.erase("MEMTUNED_TARGET");
  all.erase("NO_COLOR");
  for (const auto& [name, value] : changes) all[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Running::Running(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& environment) {
  std::string folder = "/tmp/ctl-run-XXXXXX";
  if (mkdtemp(folder.data()) != nullptr) folder_ = folder;
  std::vector<std::string> words = command;
  std::vector<std::string> entries = Environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, (folder_ + "/out").c_str(),
                                   flags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, (folder_ + "/err").c_str(),
                                   flags, 0600);
  if (posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr,
                   Pointers(words).data(), Pointers(entries).data()) != 0) {
    pid_ = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
}

Running::~Running() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void Running::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

std::string Running::OutSoFar() const { return ReadFile(folder_ + "/out"); }

RunResult Running::Wait() {
  RunResult result;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (pid_ > 0) {
    result.exit =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_ = -1;
  result.out = ReadFile(folder_ + "/out");
  result.err = ReadFile(folder_ + "/err");
  return result;
}

std::string BinaryPath() {
  const char* folder = std::getenv("MEMTUNED_BIN_DIR");
  return std::string(folder == nullptr ? "." : folder) + "/memtunectl";
}

RunResult RunCtl(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment) {
  std::vector<std::string> command = {BinaryPath()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunProgram(command, environment);
}

RunResult RunOnTerminal(const std::vector<std::string>& arguments, int columns,
                        const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words = {BinaryPath()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> entries = Environment(environment);
  const std::vector<char*> argv = Pointers(words);
  const std::vector<char*> envp = Pointers(entries);
  winsize size = {};
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  RunResult result;
  std::array<char, 4096> buffer;
  // Reading fails with EIO once the child has closed its side.
  for (ssize_t got; (got = read(terminal, buffer.data(), buffer.size())) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[static_cast<size_t>(i)] != '\r') {
        result.out += buffer[static_cast<size_t>(i)];
      }
    }
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit = WEXITSTATUS(status);
  return result;
}

RunResult RunProgram(const std::vector<std::string>& command,
                     const std::map<std::string, std::string>& environment) {
  return Running(command, environment).Wait();
}

}  // namespace memtuned::ctl
