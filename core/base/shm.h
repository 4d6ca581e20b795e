// SPDX-License-Identifier: Apache-2.0
// Stores and counters in shared memory. Every store that another process may
// see goes through Store or Exchange, so that a build can count them, stop at
// the n-th, or switch fibers there. Floor 0.
#ifndef MEMTUNED_CORE_BASE_SHM_H_
#define MEMTUNED_CORE_BASE_SHM_H_

#include <atomic>
#include <cstdint>

#include "core/base/env.h"

namespace memtuned {

using Shared32 = std::atomic<uint32_t>;
using Shared64 = std::atomic<uint64_t>;
static_assert(Shared32::is_always_lock_free && Shared64::is_always_lock_free);
static_assert(sizeof(Shared32) == 4 && sizeof(Shared64) == 8);

// Release: what was written before is visible to whoever reads this value
// with acquire. On x86-64 a plain store.
template <typename T>
inline void Store(std::atomic<T>& where, T value) {
  env::SharedStore();
  where.store(value, std::memory_order_release);
  env::SharedStore();
}

template <typename T>
inline T Load(const std::atomic<T>& where) {
  env::SharedLoad();
  return where.load(std::memory_order_acquire);
}

// Reads a value whose only writer is this thread, or whose lock it holds, or
// of which any recent value will do.
template <typename T>
inline T LoadRelaxed(const std::atomic<T>& where) {
  return where.load(std::memory_order_relaxed);
}

// Compare and swap; `expected` holds the value found on failure.
template <typename T>
inline bool Exchange(std::atomic<T>& where, T& expected, T value) {
  env::SharedStore();
  const bool done = where.compare_exchange_strong(
      expected, value, std::memory_order_acq_rel, std::memory_order_acquire);
  env::SharedStore();
  return done;
}

// Stores and returns what was there; ordered with all others of its kind.
template <typename T>
inline T Swap(std::atomic<T>& where, T value) {
  env::SharedStore();
  const T before = where.exchange(value);
  env::SharedStore();
  return before;
}

// A counter with one writer at a time (its lock is held, or it belongs to
// this thread): no read-modify-write needed; readers may look at any moment.
// On x86-64 one instruction; compilers make three of it.
template <typename T>
inline void Bump(std::atomic<T>& counter, T by = 1) {
  env::SharedCount();
#if defined(__x86_64__) && !MEMTUNED_THREAD_SANITIZER
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 4) {
    asm("addl %1, %0" : "+m"(counter) : "er"(by) : "cc");
  } else {
    asm("addq %1, %0" : "+m"(counter) : "er"(by) : "cc");
  }
#else
  counter.store(counter.load(std::memory_order_relaxed) + by,
                std::memory_order_relaxed);
#endif
  env::SharedCount();
}

// Bump, and what it made of the counter.
template <typename T>
inline T BumpTo(std::atomic<T>& counter, T by) {
  env::SharedCount();
  const T sum = counter.load(std::memory_order_relaxed) + by;
  counter.store(sum, std::memory_order_relaxed);
  env::SharedCount();
  return sum;
}

// A counter with many writers.
template <typename T>
inline void AtomicBump(std::atomic<T>& counter, T by = 1) {
  env::SharedCount();
  counter.fetch_add(by, std::memory_order_relaxed);
  env::SharedCount();
}

// Raises a high-water mark with many writers.
inline void AtomicMax(Shared64& mark, uint64_t value) {
  uint64_t before = LoadRelaxed(mark);
  while (before < value) {
    env::SharedCount();
    if (mark.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
      env::SharedCount();
      return;
    }
  }
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_SHM_H_
