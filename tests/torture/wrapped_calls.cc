// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/wrapped_calls.h"

#include "tests/torture/actor.h"

// The linker's names.
extern "C" {
void* __real_memtuned_allocate(memtuned_pool* pool, int order) noexcept;
memtuned_status __real_memtuned_free(memtuned_pool* pool, void* block,
                                     int order) noexcept;
}

namespace memtuned::torture {

void* RealAllocate(memtuned_pool* pool, int order) noexcept {
  return __real_memtuned_allocate(pool, order);
}

memtuned_status RealFree(memtuned_pool* pool, void* block, int order) noexcept {
  return __real_memtuned_free(pool, block, order);
}

}  // namespace memtuned::torture

using memtuned::torture::Actor;

extern "C" {

void* __wrap_memtuned_allocate(memtuned_pool* pool, int order) noexcept {
  Actor* actor = Actor::OfThisThread();
  return actor == nullptr ? __real_memtuned_allocate(pool, order)
                          : actor->Allocate(order);
}

memtuned_status __wrap_memtuned_free(memtuned_pool* pool, void* block,
                                     int order) noexcept {
  Actor* actor = Actor::OfThisThread();
  if (actor == nullptr) return __real_memtuned_free(pool, block, order);
  actor->Free(block, order);
  return MEMTUNED_OK;
}
}
