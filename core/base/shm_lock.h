// SPDX-License-Identifier: Apache-2.0
// A lock in shared memory: one word that holds its owner. Ranked: take only a
// lower rank than any you hold (debug builds abort otherwise).
// Not fair: FIFO spin locks convoy when the next waiter is preempted.
//
// A holder may die, or be stopped. Whoever waits asks whether it lives, and
// takes the lock over from a dead one, together with what that one left half
// done. A stopped one is not waited for longer than the waiter has patience.
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
  kStack = 5,
  kZone = 10,
  kLru = 20,
  kPageset = 30,
  kTuning = 40,
  kLimit = 50,
};

// Who takes a lock: a thread slot's generation and number, never 0. Comes
// from memory any attached process can write: bounds-check before use.
using ThreadOwner = uint32_t;

// What becomes of the owner of a lock. Asked by those that wait.
struct DeathProbe {
  // It ended, and will never let go.
  bool (*died)(const void* context, ThreadOwner holder,
               ThreadOwner waiter) = nullptr;
  // For all that is known it will let go as soon as it gets a CPU.
  bool (*runs)(const void* context, ThreadOwner holder) = nullptr;
  const void* context = nullptr;

  bool Died(ThreadOwner holder, ThreadOwner waiter) const {
    return holder != 0 && died != nullptr && died(context, holder, waiter);
  }
  bool Runs(ThreadOwner holder) const {
    return runs != nullptr && runs(context, holder);
  }
};

// How long an operation waits, all its locks together, for holders that live.
// After that the holder is asked about: for one that is stopped nobody waits
// any longer, for one that is preempted up to kMostNs.
struct Patience {
  static constexpr uint64_t kEndless = ~uint64_t{0};
  static constexpr uint64_t kMostNs = 1'000'000'000;
  uint64_t left_ns = kEndless;
  uint64_t most_ns = kMostNs;

  void Renew() { *this = {env::kPatienceNs, kMostNs}; }
  // For what can be done elsewhere: a preempted holder is not waited for any
  // longer than a stopped one.
  void RenewBriefly() { *this = {env::kPatienceNs, env::kPatienceNs}; }
  // Elsewhere it could not be done: waits again, if the holder runs.
  void Extend() { most_ns = kMostNs; }
  void Spend(uint64_t ns) {
    if (left_ns != kEndless) left_ns -= ns < left_ns ? ns : left_ns;
    most_ns -= ns < most_ns ? ns : most_ns;
  }
  void Lose() { left_ns = 0; }
  // Rounds as well, each of which gives the CPU to the holder: time also
  // passes for a waiter that is preempted itself.
  bool Over(int round, uint64_t waited_ns, ThreadOwner holder,
            const DeathProbe& probe) {
    constexpr int kLeastRounds = 320;
    constexpr uint64_t kAskAgainNs = 5'000'000;
    if (round < kLeastRounds || waited_ns < left_ns) return false;
    if (waited_ns >= most_ns || holder == 0 || !probe.Runs(holder)) {
      return true;
    }
    left_ns = waited_ns + kAskAgainNs;
    return false;
  }
};

// How a lock was got, or not.
struct LockWait {
  uint64_t ns = 0;          // 0: it was free at once
  bool taken_over = false;  // from a dead holder, in the middle of a change
};

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
    env::SharedCount();
    return true;
  }

  // Blocks: until the holder lets go, dies, or `patience` is over.
  // Returns: whether the lock is now held by `owner`. If wait->taken_over, what
  // the lock protects must be put right first.
  bool LockWithin(ThreadOwner owner, const DeathProbe& probe,
                  Patience& patience, LockWait* wait) TRY_ACQUIRE(true) {
    if (MEMTUNED_LIKELY(TryLock(owner))) return true;
    return LockSlow(owner, probe, patience, wait);
  }

  // For those that nobody outlives: tests, and whoever creates a segment.
  // Returns: nanoseconds waited, 0 when it was free at once.
  uint64_t Lock(ThreadOwner owner) ACQUIRE() NO_THREAD_SAFETY_ANALYSIS {
    Patience endless;
    LockWait wait;
    LockWithin(owner, DeathProbe{}, endless, &wait);
    return wait.ns;
  }

  void Unlock() RELEASE() {
    CheckRankRelease(kRank);
    env::LockEdge(this);
    env::SharedCount();
    word_.store(0, std::memory_order_release);
    env::SharedCount();
  }

  // The owner's word, 0 when free; a glance, for reports and takeover.
  ThreadOwner HolderNow() const {
    return word_.load(std::memory_order_relaxed);
  }

 private:
  __attribute__((noinline)) bool LockSlow(
      ThreadOwner owner, const DeathProbe& probe, Patience& patience,
      LockWait* wait) NO_THREAD_SAFETY_ANALYSIS {
    const uint64_t start = env::NowNs();
    for (int round = 0;; ++round) {
      // Look before trying: a failing exchange steals the holder's line.
      const ThreadOwner holder = word_.load(std::memory_order_relaxed);
      bool mine = holder == 0 && TryLock(owner);
      if (probe.Died(holder, owner)) {
        mine = wait->taken_over = TakeOver(holder, owner);
      }
      const uint64_t waited = env::NowNs() - start;
      if (mine || patience.Over(round, waited, holder, probe)) {
        wait->ns = waited == 0 ? 1 : waited;
        patience.Spend(waited);
        if (!mine) patience.Lose();
        return mine;
      }
      env::SpinPause(round);
    }
  }

  bool TakeOver(ThreadOwner dead, ThreadOwner owner) {
    if (!word_.compare_exchange_strong(dead, owner, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return false;
    }
    CheckRankAcquire(kRank);
    env::SharedCount();
    return true;
  }

  Shared32 word_{0};
};

// Takes a lock that counts itself. Returns: as LockWithin does.
template <LockRank kRank>
inline bool LockCounted(ShmLock<kRank>& lock, LockCounters& counters,
                        ThreadOwner owner, const DeathProbe& probe,
                        Patience& patience, LockWait* wait)
    TRY_ACQUIRE(true, lock) {
  if (MEMTUNED_UNLIKELY(!lock.LockWithin(owner, probe, patience, wait))) {
    return false;
  }
  Bump(counters.acquisitions);
  if (MEMTUNED_UNLIKELY(wait->ns != 0)) {
    Bump(counters.contended);
    Bump(counters.wait_ns, wait->ns);
    Bump(counters.wait_buckets[static_cast<size_t>(LockWaitBucket(wait->ns))]);
  }
  return true;
}

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_SHM_LOCK_H_
