// SPDX-License-Identifier: Apache-2.0
// Lets one change of a subject run at a time and remembers the answers to
// recent request ids, so that a repeated call changes nothing twice. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_REQUEST_LOG_H_
#define MEMTUNED_DAEMON_RPC_REQUEST_LOG_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/sampler.h"

namespace memtuned {

// Invariants: at most kMaxEntries answers, and at most kMaxBytes of them
// unless a single one is larger; the oldest go first, and all after kMaxAge.
// Thread safety: any thread.
class RequestLog {
 public:
  static constexpr size_t kMaxEntries = 16384;
  static constexpr size_t kMaxBytes = 32 << 20;
  static constexpr std::chrono::hours kMaxAge{1};

  // What makes two calls the same: ids of different callers have nothing to
  // do with each other.
  struct Request {
    std::string caller;  // no line end in an id, so any text will do
    std::string id;      // "" is never found and never stored
    std::string content;
    SteadyTime now = std::chrono::steady_clock::now();
  };

  // Holds a subject's turn; gives it back when it goes out of scope.
  class Turn {
   public:
    explicit Turn(RequestLog* log) : log_(log) {}
    Turn(Turn&& other) noexcept : log_(other.log_) { other.log_ = nullptr; }
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (log_ != nullptr) log_->Leave();
    }

   private:
    RequestLog* log_;
  };

  // Blocks: until earlier changes are through, or `deadline`.
  // Errors: kDeadlineExceeded.
  absl::StatusOr<Turn> Enter(SteadyTime deadline) EXCLUDES(mutex_);

  // REQUIRES: the caller holds the turn.
  // Returns: the serialized answer, empty when the id is new.
  // Errors: kInvalidArgument (REQUEST_ID_REUSED) when it was used for
  // something else.
  absl::StatusOr<std::string> Find(const Request& request);
  // REQUIRES: the caller holds the turn; the id is new.
  void Store(const Request& request, std::string answer);

 private:
  struct Entry {
    std::string key, content, answer;
    SteadyTime stored;
    size_t Bytes() const { return key.size() + content.size() + answer.size(); }
  };

  void Leave() EXCLUDES(mutex_);
  void DropOldest();

  Mutex mutex_;
  CondVar left_;
  bool busy_ GUARDED_BY(mutex_) = false;

  // Touched by the holder of the turn only.
  std::list<Entry> entries_;  // newest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_REQUEST_LOG_H_
