// SPDX-License-Identifier: Apache-2.0
#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace memtuned {

void CheckFailed(const char* file, int line, const char* what, long long a,
                 long long b) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s (%lld, %lld)\n", file, line,
               what, a, b);
  std::abort();
}

}  // namespace memtuned
