// SPDX-License-Identifier: Apache-2.0
// The linker (--wrap) sends every call of memtuned_allocate and memtuned_free
// in this program to wrapped_calls.cc; these are the library's own.
#ifndef MEMTUNED_TESTS_TORTURE_WRAPPED_CALLS_H_
#define MEMTUNED_TESTS_TORTURE_WRAPPED_CALLS_H_

#include "client/attach/include/memtuned/memtuned.h"

namespace memtuned::torture {

void* RealAllocate(memtuned_pool* pool, int order) noexcept;
memtuned_status RealFree(memtuned_pool* pool, void* block, int order) noexcept;

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_WRAPPED_CALLS_H_
