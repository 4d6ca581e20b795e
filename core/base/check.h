// SPDX-License-Identifier: Apache-2.0
// CHECK: our own invariants. A caller's mistake (double free, bad value) is
// never checked this way; it is refused and counted. Floor 0.
#ifndef MEMTUNED_CORE_BASE_CHECK_H_
#define MEMTUNED_CORE_BASE_CHECK_H_

namespace memtuned {

// Prints the broken invariant to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* what,
                              long long a, long long b);

}  // namespace memtuned

#define MEMTUNED_LIKELY(x) __builtin_expect(!!(x), 1)
#define MEMTUNED_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define CHECK(condition)      \
  (MEMTUNED_LIKELY(condition) \
       ? static_cast<void>(0) \
       : ::memtuned::CheckFailed(__FILE__, __LINE__, #condition, 0, 0))

// With two numbers that explain the failure.
#define CHECK_WITH(condition, a, b)                              \
  (MEMTUNED_LIKELY(condition)                                    \
       ? static_cast<void>(0)                                    \
       : ::memtuned::CheckFailed(__FILE__, __LINE__, #condition, \
                                 static_cast<long long>(a),      \
                                 static_cast<long long>(b)))

#ifdef NDEBUG
#define DCHECK(condition) static_cast<void>(0)
#else
#define DCHECK(condition) CHECK(condition)
#endif

#endif  // MEMTUNED_CORE_BASE_CHECK_H_
