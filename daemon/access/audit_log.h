// SPDX-License-Identifier: Apache-2.0
// Who changed what, and who was refused: one line a call. Floor 3.
#ifndef MEMTUNED_DAEMON_ACCESS_AUDIT_LOG_H_
#define MEMTUNED_DAEMON_ACCESS_AUDIT_LOG_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/log.h"

namespace memtuned {

// Thread safety: any thread.
class AuditLog {
 public:
  // `target` is "log", the daemon's own log, "off", or the path of a file
  // that gets one JSON object a line, mode 0640.
  // Errors: those of opening the file.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(
      const std::string& target);

  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // One line of event "audit" with the time. A line that cannot be written is
  // an error of the daemon's log, and there in full: the call it tells of has
  // happened.
  void Write(const LogFields& fields) EXCLUDES(mutex_);

  // Opens the path again, after the file was moved away. The old file stays
  // in use when that fails.
  void Reopen() EXCLUDES(mutex_);

 private:
  AuditLog(std::string target, int fd) : target_(std::move(target)), fd_(fd) {}

  const std::string target_;
  Mutex mutex_;
  int fd_ GUARDED_BY(mutex_);  // -1 without a file
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_ACCESS_AUDIT_LOG_H_
