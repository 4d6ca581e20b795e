// SPDX-License-Identifier: Apache-2.0
// A lock in shared memory that is biased to one CPU: threads that run there
// take it by plain stores, everybody else asks first and pays for all. Of two
// words the holder's belongs to that CPU, the visitor's to the others:
//
//   on its CPU   in one restartable sequence: holder was 0, holder = me;
//                then: visitor is 0, or holder = 0 and a miss
//   elsewhere    visitor = me, by compare and swap; a barrier on every CPU
//                that runs a process of the pool; wait for holder 0
//
// The barrier decides who was first: whoever it caught before its look at the
// visitor word sees the visitor there, whoever it caught after has its holder
// word seen. Two threads of one CPU exclude each other because the kernel
// restarts the sequence when it preempts, migrates or signals the thread.
// A pair of take and give has two locked instructions less; a visitor pays
// with a system call.
//
// Nobody of that CPU can hold the lock while the visitor's word is taken, so a
// visitor may also put right what a dead holder, or a dead visitor, left.
//
// A kTrylock segment, for machines that lack either, uses the holder's word
// as a plain compare-and-swap lock. Floor 0.
#ifndef MEMTUNED_CORE_BASE_BIASED_LOCK_H_
#define MEMTUNED_CORE_BASE_BIASED_LOCK_H_

#include <cstdint>

#include "core/base/check.h"
#include "core/base/shm.h"
#include "core/base/shm_lock.h"
#include "core/base/thread_annotations.h"

namespace memtuned {

// How the guards of a segment are taken; one kind a segment, in its header.
enum class GuardKind : uint32_t {
  kClosed = 0,   // this process may not take any: no barrier allowed here
  kTrylock = 1,  // compare and swap
  kBiased = 2,
};

// The CPU from which a thread takes guards: for kBiased that to which the lock
// is biased, else kNowhere.
struct GuardSeat {
  GuardKind kind = GuardKind::kClosed;
  uint32_t cpu = env::kNowhere;
  env::CpuGlance cpu_now;
};

template <LockRank kRank>
class CAPABILITY("biased_lock") BiasedLock {
 public:
  // Returns: whether the lock is now held by `owner`. Never waits.
  bool TryLock(ThreadOwner owner, const GuardSeat& seat) TRY_ACQUIRE(true) {
    return seat.kind == GuardKind::kBiased
               ? TryLockBiased(owner, seat)
               : seat.kind == GuardKind::kTrylock && TrySwap(owner);
  }

  // TryLock of each kind. The first one misses on a seat of another kind; it
  // reads all it needs from memory, so that callers have no register to save.
  __attribute__((always_inline)) bool TryLockBiased(const ThreadOwner& owner,
                                                    const GuardSeat& seat)
      TRY_ACQUIRE(true) {
    env::LockEdge(this);
    if (MEMTUNED_UNLIKELY(
            !env::StoreIfHere(seat.cpu_now, seat.cpu, holder_, owner))) {
      return false;
    }
    env::SharedCount();
    // The store above must be visible before this load is answered; no fence
    // here, as the barrier in LockFromAnywhere stands in for it.
    env::SharedLoad();
    if (MEMTUNED_UNLIKELY(visitor_.load(std::memory_order_acquire) != 0)) {
      holder_.store(0, std::memory_order_release);
      env::SharedCount();
      return false;
    }
    CheckRankAcquire(kRank);
    return true;
  }
  bool TrySwap(ThreadOwner owner) TRY_ACQUIRE(true) {
    env::LockEdge(this);
    if (MEMTUNED_UNLIKELY(!Swap(holder_, owner))) return false;
    CheckRankAcquire(kRank);
    return true;
  }

  void Unlock() RELEASE() {
    CheckRankRelease(kRank);
    env::LockEdge(this);
    env::SharedCount();
    holder_.store(0, std::memory_order_release);
    env::SharedCount();
  }

  // For those that may run on any CPU. Blocks: until holder and other visitors
  // let go or die, or `patience` is over; on the CPU of the lock every TryLock
  // misses meanwhile.
  // Returns: whether the lock is now held by `owner`. If wait->taken_over, what
  // the lock protects must be put right first.
  // REQUIRES: kind is not kClosed.
  // Cost: kBiased: a system call, and an interrupt on each CPU that runs a
  // process of the pool.
  bool LockFromAnywhere(ThreadOwner owner, GuardKind kind,
                        const DeathProbe& probe, Patience& patience,
                        LockWait* wait)
      TRY_ACQUIRE(true) NO_THREAD_SAFETY_ANALYSIS {
    env::LockEdge(this);
    const uint64_t start = env::NowNs();
    Shared32& mine = WordFromAnywhere(kind);
    const auto swap = [&] { return Swap(mine, owner); };
    bool held = WaitFor(mine, swap, owner, owner, probe, patience, start, wait);
    if (held && kind == GuardKind::kBiased) {
      env::BarrierOnAllCpus();
      // Pairs with the release in Unlock.
      const auto gone = [&] { return Load(holder_) == 0; };
      held = WaitFor(holder_, gone, owner, 0, probe, patience, start, wait);
      // Pairs with the acquire in TryLock.
      if (!held) mine.store(0, std::memory_order_release);
      env::SharedCount();
    }
    wait->ns = env::NowNs() - start;
    patience.Spend(wait->ns);
    if (held) {
      CheckRankAcquire(kRank);
    } else {
      patience.Lose();
    }
    return held;
  }
  // For those that nobody outlives: tests.
  void LockFromAnywhere(ThreadOwner owner, GuardKind kind)
      ACQUIRE() NO_THREAD_SAFETY_ANALYSIS {
    Patience endless;
    LockWait wait;
    LockFromAnywhere(owner, kind, DeathProbe{}, endless, &wait);
  }

  void UnlockFromAnywhere(GuardKind kind) RELEASE() {
    CheckRankRelease(kRank);
    env::LockEdge(this);
    // Pairs with the acquire in TryLock.
    env::SharedCount();
    WordFromAnywhere(kind).store(0, std::memory_order_release);
    env::SharedCount();
  }

  // The owner's word, 0 when free; a glance, for reports and takeover.
  ThreadOwner HolderNow() const {
    const ThreadOwner here = LoadRelaxed(holder_);
    return here != 0 ? here : LoadRelaxed(visitor_);
  }

 private:
  static bool Swap(Shared32& word, ThreadOwner owner) {
    uint32_t expected = 0;
    // Pairs with the release in Unlock and UnlockFromAnywhere.
    const bool done = word.compare_exchange_strong(
        expected, owner, std::memory_order_acquire, std::memory_order_relaxed);
    env::SharedCount();
    return done;
  }

  // `waiter` waits until `got` says so, or `word` is a dead owner's, whose
  // place `heir` takes.
  template <typename Got>
  static bool WaitFor(Shared32& word, const Got& got, ThreadOwner waiter,
                      ThreadOwner heir, const DeathProbe& probe,
                      Patience& patience, uint64_t start, LockWait* wait) {
    for (int round = 0;; ++round) {
      ThreadOwner holder = LoadRelaxed(word);
      if (holder == 0 && got()) return true;
      if (probe.Died(holder, waiter) &&
          word.compare_exchange_strong(holder, heir)) {
        wait->taken_over = true;
        env::SharedCount();
        return true;
      }
      if (patience.Over(round, env::NowNs() - start, holder, probe)) {
        return false;
      }
      env::SpinPause(round);
    }
  }

  Shared32& WordFromAnywhere(GuardKind kind) {
    return kind == GuardKind::kBiased ? visitor_ : holder_;
  }

  Shared32 holder_{0};
  Shared32 visitor_{0};
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_BASE_BIASED_LOCK_H_
