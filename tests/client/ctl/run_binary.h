// SPDX-License-Identifier: Apache-2.0
// Runs the real memtunectl, as a shell would.
#ifndef MEMTUNED_TESTS_CLIENT_CTL_RUN_BINARY_H_
#define MEMTUNED_TESTS_CLIENT_CTL_RUN_BINARY_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace memtuned::ctl {

struct RunResult {
  int exit = -1;  // status, or 128 + signal
  std::string out;
  std::string err;
};

// A started process whose output is collected in files.
class Running {
 public:
  Running(const std::vector<std::string>& command,
          const std::map<std::string, std::string>& environment = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void Signal(int signal) const;
  // What it printed so far.
  std::string OutSoFar() const;
  // Waits for the end; kills it after a minute.
  RunResult Wait();

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

std::string BinaryPath();  // of memtunectl

// Runs memtunectl to its end.
RunResult RunCtl(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment = {});
// Runs memtunectl on a terminal that is `columns` wide; `out` is all it shows,
// with plain line ends.
RunResult RunOnTerminal(
    const std::vector<std::string>& arguments, int columns,
    const std::map<std::string, std::string>& environment = {});
// Runs any program to its end.
RunResult RunProgram(
    const std::vector<std::string>& command,
    const std::map<std::string, std::string>& environment = {});

}  // namespace memtuned::ctl

#endif  // MEMTUNED_TESTS_CLIENT_CTL_RUN_BINARY_H_
