// SPDX-License-Identifier: Apache-2.0
// Durations, and where they lie.
#ifndef MEMTUNED_TESTS_TORTURE_SAMPLES_H_
#define MEMTUNED_TESTS_TORTURE_SAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtuned::torture {

class Samples {
 public:
  void Add(uint64_t ns) { values_.push_back(ns); }
  size_t size() const { return values_.size(); }

  // `part`: 0.5 is the median, 1 the largest. 0 without samples.
  double Milliseconds(double part) const {
    if (values_.empty()) return 0;
    std::vector<uint64_t> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const double at = part * static_cast<double>(sorted.size() - 1);
    return static_cast<double>(sorted[static_cast<size_t>(at)]) / 1e6;
  }

 private:
  std::vector<uint64_t> values_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_SAMPLES_H_
