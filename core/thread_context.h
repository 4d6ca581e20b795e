// SPDX-License-Identifier: Apache-2.0
// Finding the ThreadContext of the running thread for one pool: one
// thread-local comparison on the fast path. In the virtual build, that of the
// running fiber. Floor 2.
#ifndef MEMTUNED_CORE_THREAD_CONTEXT_H_
#define MEMTUNED_CORE_THREAD_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/segment.h"

namespace memtuned {

// The pool this thread used last, and what it found about the CPU it ran on.
// On the fast path this replaces a walk of dependent loads (CPU, its entry,
// its pageset) by comparisons that are predicted.
struct LastUsed {
  uint64_t registry = 0;  // ThreadRegistry::id_, never reused
  GuardSeat seat;
  ThreadOwner owner = 0;
  PagesetShared* pageset = nullptr;  // of the CPU's home zone
  const ZoneShared* zone = nullptr;
  uint64_t first_pfn = 0, nr_pages = 0;  // of that zone
  uint32_t node = 0;
  uint32_t cpu = env::kNowhere;  // number of this machine
  // Last flagged for the process; they stay while the process is attached.
  uint32_t section = kNil;
  uint64_t mine = 0;           // PageWord::State of its blocks of order 0
  ThreadSlot* slot = nullptr;  // never nullptr once `registry` is set
  ThreadContext* context = nullptr;

  // Takes the guard of `its`, which is *pageset; false also when the thread is
  // elsewhere by now.
  __attribute__((always_inline)) bool TryLock(PagesetShared& its) const
      TRY_ACQUIRE(true, its.guard) {
    return MEMTUNED_LIKELY(its.guard.TryLockBiased(owner, seat)) ||
           (seat.kind == GuardKind::kTrylock && cpu == seat.cpu_now.Now() &&
            its.guard.TrySwap(owner));
  }
};
#ifdef MEMTUNED_VIRTUAL
extern LastUsed fiber_last_used[env::kMaxVirtualCpus];
inline LastUsed& LastUsedHere() { return fiber_last_used[env::CurrentFiber()]; }
#else
extern constinit thread_local LastUsed tls_last_used
    __attribute__((tls_model("initial-exec")));
inline LastUsed& LastUsedHere() { return tls_last_used; }
#endif

// All threads' contexts of one Allocator.
//
// Fork-safe: in the child every registry of the parent is disowned. Its
// contexts and slots are the parent's; the child touches none of them.
// Thread safety: any thread.
class ThreadRegistry {
 public:
  ThreadRegistry(Segment& segment, ProcessOwner process);
  ~ThreadRegistry();
  ThreadRegistry(const ThreadRegistry&) = delete;
  ThreadRegistry& operator=(const ThreadRegistry&) = delete;

  // The running thread's context, made on first use.
  ThreadContext& Current();

  // What is known of this thread on the CPU of last.seat; nullptr when
  // Refresh() must be called first: on the fast path no call may stand before
  // the tail.
  LastUsed* IfCurrent() const {
    LastUsed& last = LastUsedHere();
    return MEMTUNED_LIKELY(last.registry == id_.load(std::memory_order_relaxed))
               ? &last
               : nullptr;
  }
  // Brings LastUsedHere() up to date with the CPU.
  void Refresh();

  // False in a forked child, and of a segment that is only read.
  bool owned() const { return owned_.load(std::memory_order_relaxed); }

 private:
  friend struct ThreadContexts;
  friend struct LivingRegistries;
  void Fill(ThreadContext& context);

  std::atomic<uint64_t> id_;
  std::atomic<bool> owned_;
  // Of threads that may still run when the pool is left: under the mutex of
  // LivingRegistries.
  std::vector<ThreadContext*> contexts_;
  // Serves threads whose own context is already destroyed: no slot.
  ThreadContext spare_;
  Segment& segment_;
  const ProcessOwner process_;
#ifdef MEMTUNED_VIRTUAL
  ThreadContext fibers_[env::kMaxVirtualCpus];
#endif
};

}  // namespace memtuned

#endif  // MEMTUNED_CORE_THREAD_CONTEXT_H_
