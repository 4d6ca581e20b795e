// SPDX-License-Identifier: Apache-2.0
#include "daemon/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

// Feedings in a watchdog's period. A hung daemon is ended between one and
// 1 + 1 / this periods after it hung.
constexpr int kFeedingsAPeriod = 4;

void Tell(const std::string& text) { sd_notify(0, text.c_str()); }

}  // namespace

ServiceManager::ServiceManager() {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) > 0) {
    feeding_interval_ =
        std::chrono::microseconds(microseconds) / kFeedingsAPeriod;
  }
}

void ServiceManager::Ready(const std::string& status) const {
  Tell(absl::StrCat("READY=1\nSTATUS=", status));
}

void ServiceManager::Reloading() const { Tell("RELOADING=1"); }

void ServiceManager::Stopping() const { Tell("STOPPING=1"); }

void ServiceManager::Feed(std::chrono::nanoseconds overdue) {
  if (!feeding_interval_.has_value()) return;
  const bool hungry = overdue > *feeding_interval_;
  if (hungry && !withheld_) {
    LogEvent(
        LogLevel::kError, "watchdog-not-fed",
        {{"sampler-overdue", absl::FormatDuration(absl::FromChrono(overdue))}});
  }
  withheld_ = hungry;
  if (!hungry) Tell("WATCHDOG=1");
}

}  // namespace memtuned
