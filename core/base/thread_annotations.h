// SPDX-License-Identifier: Apache-2.0
// Clang thread-safety attributes, empty elsewhere (GCC warns on them). Named
// as in Clang's documentation. GUARDED_BY, PT_GUARDED_BY and
// NO_THREAD_SAFETY_ANALYSIS are Abseil's, which defines them under the same
// names in nearly every translation unit. Floor 0.
#ifndef MEMTUNED_CORE_BASE_THREAD_ANNOTATIONS_H_
#define MEMTUNED_CORE_BASE_THREAD_ANNOTATIONS_H_

#include "absl/base/thread_annotations.h"

#if defined(__clang__)
#define MEMTUNED_ATTRIBUTE(x) __attribute__((x))
#else
#define MEMTUNED_ATTRIBUTE(x)
#endif

#define CAPABILITY(x) MEMTUNED_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY MEMTUNED_ATTRIBUTE(scoped_lockable)
#define REQUIRES(...) MEMTUNED_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) MEMTUNED_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) MEMTUNED_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) MEMTUNED_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define EXCLUDES(...) MEMTUNED_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) MEMTUNED_ATTRIBUTE(assert_capability(x))
#define RETURN_CAPABILITY(x) MEMTUNED_ATTRIBUTE(lock_returned(x))

#endif  // MEMTUNED_CORE_BASE_THREAD_ANNOTATIONS_H_
