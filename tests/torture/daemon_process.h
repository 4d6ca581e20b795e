// SPDX-License-Identifier: Apache-2.0
// The real memtuned, in a temporary folder of its own.
#ifndef MEMTUNED_TESTS_TORTURE_DAEMON_PROCESS_H_
#define MEMTUNED_TESTS_TORTURE_DAEMON_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/torture/child.h"

namespace memtuned::torture {

class DaemonProcess {
 public:
  // `pool`: what --pool says after "default=".
  // Aborts when there is no temporary folder.
  DaemonProcess(const std::string& bin_dir, const std::string& pool,
                const std::string& topology);
  // Stops the daemon and removes its folder.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Does not wait until it answers.
  void Start();
  // Waits until it answers. Returns: "", or why it does not.
  std::string WaitUntilReady();
  void Kill();  // SIGKILL, and waits
  // Returns: its wait status when it ended by itself.
  std::optional<int> TryWait() { return child_.TryWait(); }
  // Lets it end as an operator would. Returns: "", or what went wrong.
  std::string Stop();

  // Whether somebody could attach now: the pool's socket is open.
  bool Listens() const;
  std::string pool_socket() const { return dir_ + "/run/pools/default.sock"; }
  // Runs memtunectl. Returns: "", or what it said when it failed.
  std::string Ctl(const std::vector<std::string>& arguments);
  std::string LogTail() const;
  // The pages that its log says were given back for the dead.
  uint64_t ReclaimedPages() const;

 private:
  const std::string bin_dir_;
  std::string dir_;
  std::vector<std::string> arguments_;
  Child child_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_DAEMON_PROCESS_H_
