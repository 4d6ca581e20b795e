// SPDX-License-Identifier: Apache-2.0
// The one seam between the core and the machine: the current CPU, the time,
// waiting, and points where a shared store happens. The core asks nothing else
// of the machine while it allocates. The same sources are built twice:
//   live     (env_live.h)     real CPUs and clocks; every hook is free
//   virtual  (env_virtual.h)  one OS thread, one fiber per virtual CPU,
//                             virtual clocks, every schedule can be explored
// Floor 0.
#ifndef MEMTUNED_CORE_BASE_ENV_H_
#define MEMTUNED_CORE_BASE_ENV_H_

#ifdef MEMTUNED_VIRTUAL
#include "core/base/env_virtual.h"
#else
#include "core/base/env_live.h"
#endif

// Both define, in namespace memtuned::env:
//   uint32_t CurrentCpu()      operating system's CPU number; may be stale as
//                              soon as it is read
//   uint32_t CurrentCpuOrNone()  the same in one load, or a huge number when
//                              only the kernel knows
//   CpuGlance::OfThisThread()  kept by a thread, its Now() is that number
//   bool StoreIfHere(CpuGlance, cpu, word, value)
//                              if this thread runs on `cpu` and the word is 0,
//                              stores value: one step for all threads of that
//                              CPU, but not for others
//   void BarrierOnAllCpus()    every thread of every process that called
//                              JoinBarriers passes a full barrier
//   bool JoinBarriers()        false: StoreIfHere or barriers do not work here
//   std::vector<int> OnlineCpus()  of this machine, ascending
//   kPatienceNs                how long an operation waits for a lock's holder
//                              that lives (Patience)
//   uint64_t NowNs()           monotonic nanoseconds
//   void SpinPause(int round)  called by a waiter, round 0, 1, 2, ...
//   void LockEdge(const void*) before a lock in shared memory is tried and
//                              before it is released
//   void SharedStore()         before and after each store to shared memory
//   void SharedCount()        before and after each addition to a counter there
//   void SharedLoad()         before each load that synchronises (Load)
//   void Charge(Cost)          work of a kind was done (virtual time)

#endif  // MEMTUNED_CORE_BASE_ENV_H_
