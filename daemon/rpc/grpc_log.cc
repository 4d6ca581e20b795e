// SPDX-License-Identifier: Apache-2.0
// gRPC's log function, with a limit for each second.
#include "daemon/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "daemon/log.h"

namespace memtuned {
namespace {

// Thread safety: any thread.
class LineLimit {
 public:
  // Returns: -1 when the line must not be written, else how many were not
  // since the last one.
  int64_t Pass() EXCLUDES(mutex_) {
    const auto now = std::chrono::steady_clock::now();
    const MutexLock lock(mutex_);
    if (now - begin_ >= std::chrono::seconds(1)) {
      begin_ = now;
      written_ = 0;
    }
    if (written_ == kMaxGrpcLinesASecond) {
      ++dropped_;
      return -1;
    }
    ++written_;
    const int64_t dropped = dropped_;
    dropped_ = 0;
    return dropped;
  }

 private:
  Mutex mutex_;
  std::chrono::steady_clock::time_point begin_ GUARDED_BY(mutex_);
  int written_ GUARDED_BY(mutex_) = 0;
  int64_t dropped_ GUARDED_BY(mutex_) = 0;
};

void Log(gpr_log_func_args* args) {
  static LineLimit& limit = *new LineLimit;  // gRPC's threads outlive main
  const int64_t dropped = limit.Pass();
  if (dropped < 0) return;
  LogFields fields = {{"message", args->message}};
  if (dropped > 0) fields.emplace_back("dropped", absl::StrCat(dropped));
  LogEvent(LogLevel::kWarning, "grpc", fields);
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(Log); }

}  // namespace memtuned
