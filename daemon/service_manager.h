// SPDX-License-Identifier: Apache-2.0
// What the daemon tells the service manager that started it (systemd, over
// NOTIFY_SOCKET). Without one every call does nothing. The only file pair
// that knows libsystemd. Floor 5.
#ifndef MEMTUNED_DAEMON_SERVICE_MANAGER_H_
#define MEMTUNED_DAEMON_SERVICE_MANAGER_H_

#include <chrono>
#include <optional>
#include <string>

namespace memtuned {

// Thread safety: the main thread.
class ServiceManager {
 public:
  // REQUIRES: no other thread runs; the environment is read.
  ServiceManager();

  // `status` is the line that "systemctl status" shows.
  void Ready(const std::string& status) const;
  void Reloading() const;
  void Stopping() const;

  // How often to look whether the watchdog may be fed: several times in the
  // period that the manager waits. Nothing without a watchdog.
  std::optional<std::chrono::nanoseconds> feeding_interval() const {
    return feeding_interval_;
  }
  // Feeds the watchdog, unless something has been overdue for longer than a
  // feeding interval: then the manager ends and restarts this process.
  void Feed(std::chrono::nanoseconds overdue);

 private:
  std::optional<std::chrono::nanoseconds> feeding_interval_;
  bool withheld_ = false;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_SERVICE_MANAGER_H_
