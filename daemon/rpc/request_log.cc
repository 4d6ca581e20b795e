// SPDX-License-Identifier: Apache-2.0
// The turn is a flag under a mutex rather than a mutex, so that waiting for
// it can end with the call's deadline.
#include "daemon/rpc/request_log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/errors.h"

namespace memtuned {
namespace {

std::string KeyOf(const RequestLog::Request& request) {
  return absl::StrCat(request.id, "\n", request.caller);
}

}  // namespace

absl::StatusOr<RequestLog::Turn> RequestLog::Enter(SteadyTime deadline) {
  MutexLock lock(mutex_);
  while (busy_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) {
      return absl::DeadlineExceededError(
          "an earlier change of this subject is still running");
    }
    left_.WaitFor(mutex_, std::min<std::chrono::nanoseconds>(
                              left, std::chrono::seconds(1)));
  }
  busy_ = true;
  return Turn(this);
}

void RequestLog::Leave() {
  MutexLock lock(mutex_);
  busy_ = false;
  left_.NotifyOne();
}

absl::StatusOr<std::string> RequestLog::Find(const Request& request) {
  while (!entries_.empty() && request.now - entries_.back().stored > kMaxAge) {
    DropOldest();
  }
  const auto found = by_key_.find(KeyOf(request));
  if (found == by_key_.end()) return std::string();
  if (found->second->content != request.content) {
    return BadField("request_id",
                    absl::StrCat("is ", Quoted(request.id),
                                 ", which was used for another request"),
                    "REQUEST_ID_REUSED");
  }
  return found->second->answer;
}

void RequestLog::Store(const Request& request, std::string answer) {
  if (request.id.empty()) return;
  entries_.push_front(
      {KeyOf(request), request.content, std::move(answer), request.now});
  by_key_[entries_.front().key] = entries_.begin();
  bytes_ += entries_.front().Bytes();
  while (entries_.size() > kMaxEntries ||
         (bytes_ > kMaxBytes && entries_.size() > 1)) {
    DropOldest();
  }
}

void RequestLog::DropOldest() {
  bytes_ -= entries_.back().Bytes();
  by_key_.erase(entries_.back().key);
  entries_.pop_back();
}

}  // namespace memtuned
