// SPDX-License-Identifier: Apache-2.0
// Nanoseconds, as env::NowNs() counts them.
#ifndef MEMTUNED_TESTS_TORTURE_DURATIONS_H_
#define MEMTUNED_TESTS_TORTURE_DURATIONS_H_

#include <cstdint>

namespace memtuned::torture {

inline constexpr uint64_t kMillisecond = 1000000;
inline constexpr uint64_t kSecond = 1000 * kMillisecond;

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_DURATIONS_H_
