// SPDX-License-Identifier: Apache-2.0
// A moment by which something has to be done.
#ifndef MEMTUNED_CLIENT_ATTACH_DEADLINE_H_
#define MEMTUNED_CLIENT_ATTACH_DEADLINE_H_

#include <algorithm>
#include <chrono>

namespace memtuned::attach {

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds from_now)
      : total_(from_now), end_(std::chrono::steady_clock::now() + from_now) {}

  std::chrono::milliseconds total() const { return total_; }
  bool passed() const { return std::chrono::steady_clock::now() >= end_; }
  // For poll(): milliseconds left, rounded up, so that 0 means passed.
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        end_ - std::chrono::steady_clock::now());
    constexpr std::chrono::milliseconds kMost = std::chrono::hours(24);
    return static_cast<int>(
        std::clamp(left, std::chrono::milliseconds(0), kMost).count());
  }

 private:
  const std::chrono::milliseconds total_;
  const std::chrono::steady_clock::time_point end_;
};

}  // namespace memtuned::attach

#endif  // MEMTUNED_CLIENT_ATTACH_DEADLINE_H_
