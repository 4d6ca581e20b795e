// SPDX-License-Identifier: Apache-2.0
// A line is one write() to a file opened for appending, so that lines of
// others and a rotation do not tear it.
#include "daemon/access/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace memtuned {
namespace {

constexpr char kToLog[] = "log";
constexpr char kOff[] = "off";
constexpr char kEvent[] = "audit";

absl::StatusOr<int> OpenFile(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
           0640);
  if (fd >= 0) return fd;
  return absl::ErrnoToStatus(errno, absl::StrCat("audit-log ", path));
}

std::string JsonLine(const LogFields& fields) {
  return absl::StrCat("{\"time\":\"",
                      absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(),
                                       absl::UTCTimeZone()),
                      "\",", LogJson(kEvent, fields), "}\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(
    const std::string& target) {
  int fd = -1;
  if (target != kToLog && target != kOff) {
    const auto file = OpenFile(target);
    if (!file.ok()) return file.status();
    fd = *file;
  }
  return std::unique_ptr<AuditLog>(new AuditLog(target, fd));
}

AuditLog::~AuditLog() {
  if (fd_ >= 0) close(fd_);
}

void AuditLog::Write(const LogFields& fields) {
  if (target_ == kOff) return;
  if (target_ == kToLog) {
    LogEvent(LogLevel::kInfo, kEvent, fields);
    return;
  }
  const std::string line = JsonLine(fields);
  MutexLock lock(mutex_);
  const ssize_t written = write(fd_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  LogFields lost = {
      {"path", target_},
      {"error", written < 0 ? std::strerror(errno) : "cut short"}};
  lost.insert(lost.end(), fields.begin(), fields.end());
  LogEvent(LogLevel::kError, "audit-failed", lost);
}

void AuditLog::Reopen() {
  if (target_ == kOff || target_ == kToLog) return;
  const auto file = OpenFile(target_);
  if (!file.ok()) {
    LogEvent(LogLevel::kError, "audit-reopen-failed",
             {{"error", std::string(file.status().message())}});
    return;
  }
  MutexLock lock(mutex_);
  close(std::exchange(fd_, *file));
}

}  // namespace memtuned
