// SPDX-License-Identifier: Apache-2.0
// A lock in shared memory: one word that holds its owner. Ranked: take only a
// lower rank than any you hold (debug builds abort otherwise).
// Not fair: FIFO spin locks convoy when the next waiter is preempted.
// Floor 0.
#ifndef MEMTUNED_CORE_BASE_SHM_LOCK_H_
#define MEMTUNED_CORE_BASE_SHM_LOCK_H_

#include <array>
#include <cstdint>

#include "core/base/check.h"
#include "core/base/shm.h"
#include "core/base/thread_annotations.h"

namespace memtuned {

// Highest is taken first.
enum class LockRank : uint8_t {
  kZone = 10,
  kLru = 20,
  kPageset = 30,
  kTuning = 40,
};

// Who takes a lock: a thread slot's generation and number, never 0. Comes
// from memory any attached process can write: bounds-check before use.
using ThreadOwner = uint32_t;

#ifndef NDEBUG
// Aborts unless `rank` is below all ranks this thread (or fiber) holds.
void CheckRankAcquire(LockRank rank);
void CheckRankRelease(LockRank rank);
// Virtual build: the fiber ended with whatever it held.
void ForgetRanksOf(uint32_t fiber);
#else
inline void CheckRankAcquire(LockRank) {}
inline void CheckRankRelease(LockRank) {}
inline void ForgetRanksOf(uint32_t) {}
#endif

// 10 buckets, upper bounds of core/stats.h's kWaitBucketBounds.
inline constexpr int kLockWaitBuckets = 10;
int LockWaitBucket(uint64_t wait_ns);

// What a lock counts about itself. Written by its holder.
struct LockCounters {
  Shared64 acquisitions{0};
  Shared64 contended{0};
  Shared64 wait_ns{0};
  std::array<Shared64, kLockWaitBuckets> wait_buckets{};
};

template <LockRank kRank>
class CAPABILITY("shm_lock") ShmLock {
 public:
  // Returns: whether the lock is now held by `owner`. Never waits.
  bool TryLock(ThreadOwner owner) TRY_ACQUIRE(true) {
    env::LockEdge(this);
    uint32_t expected = 0;
    // Pairs with the release in Unlock.
    if (MEMTUNED_UNLIKELY(!word_.compare_exchange_strong(
            expected, owner, std::memory_order_acquire,
            std::memory_order_relaxed))) {
      return false;
    }
    CheckRankAcquire(kRank);
    return true;
  }

  // Blocks: until the holder lets go. Returns: nanoseconds waited, 0 when it
  // was free at once.
  uint64_t Lock(ThreadOwner owner) ACQUIRE() {
    if (MEMTUNED_LIKELY(TryLock(owner))) return 0;
    return LockSlow(owner);
  }

  void Unlock() RELEASE() {
    CheckRankRelease(kRank);
    env::LockEdge(this);
    word_.store(0, std::memory_order_release);
  }

  // The owner's word, 0 when free; a glance, for reports and takeover.
  ThreadOwner HolderNow() const {
    return word_.load(std::memory_order_relaxed);
  }

 private:
  __attribute__((noinline)) uint64_t LockSlow(ThreadOwner owner)
      NO_THREAD_SAFETY_ANALYSIS {
    const uint64_t start = env::NowNs();
    for (int round = 0;; ++round) {
      // Look before trying: a failing exchange steals the holder's line.
      if (word_.load(std::memory_order_relaxed) == 0 && TryLock(owner)) {
        const uint64_t waited = env::NowNs() - start;
        return waited == 0 ? 1 : waited;
      }
      env::SpinPause(round);
    }
  }

  Shared32 word_{0};
};

// Takes a lock that counts itself.
template <LockRank kRank>
inline void LockCounted(ShmLock<kRank>& lock, LockCounters& counters,
                        ThreadOwner owner) ACQUIRE(lock) {
  const uint64_t waited = lock.Lock(owner);
  Bump(counters.acquisitions);
  if (MEMTUNED_UNLIKELY(waited != 0)) {
    Bump(counters.contended);
    Bump(counters.wait_ns, waited);
    Bump(counters.wait_buckets[static_cast<size_t>(LockWaitBucket(waited))]);
  }
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_SHM_LOCK_H_
