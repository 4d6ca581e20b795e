// SPDX-License-Identifier: Apache-2.0
// A thread that uses the pool: stamps what it gets, looks at the stamp before
// it gives it back, times its calls. memtune-load's shapes come here too: their
// calls of memtuned_allocate and memtuned_free are wrapped by the linker.
#ifndef MEMTUNED_TESTS_TORTURE_ACTOR_H_
#define MEMTUNED_TESTS_TORTURE_ACTOR_H_

#include <cstdint>
#include <span>
#include <string>

#include "tests/torture/call_timer.h"
#include "tests/torture/worker_process.h"

namespace memtuned::torture {

// Ends the process with a report when the pool does what it must not.
// Thread safety: its thread's only. One at a time a thread.
class Actor {
 public:
  // `thread`: number in the worker, below kThreadsOfAWorker.
  Actor(WorkerProcess& process, uint32_t thread, Slice& slice);
  ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  // This thread's, nullptr when it is none.
  static Actor* OfThisThread();

  bool running() const { return slice_.running(); }

  void* Allocate(int order);
  void Free(void* block, int order);
  // Returns: how many blocks.
  size_t AllocateBulk(int order, std::span<void*> blocks);
  void FreeBulk(int order, std::span<void* const> blocks);

  // Offers a block to anybody. Returns: what Revoke needs to know of it.
  uint32_t Offer(void* block, int order);
  // Returns: false when it was adopted; else the block is this process's.
  bool Revoke(uint64_t offset, int order, uint32_t entry);
  // Returns: the block, nullptr when another was sooner. Whoever offered it
  // may be dead, and another may have offered the same block since.
  void* Adopt(uint64_t offset, int order);
  // Adopts and gives back. Returns: false when another was sooner.
  bool FreeAdopted(uint64_t offset, int order);

  void SetLabel(void* block, int order, uint8_t label);
  void SetMemoryPolicy(bool interleave);

  WorkerProcess& process() const { return process_; }

  // Ends the slice when it is time.
  void LookAtTheClock(uint64_t now_ns);

 private:
  // Stamps a block that is new here.
  void Got(void* block, int order);
  // Ends the process unless the stamp is this process's and unbroken.
  void CheckOwn(void* block, int order, uint32_t entry) const;
  uint32_t TakeHeld(void* block, int order) const;
  void Refused(const char* call, uint64_t offset, int order,
               memtuned_status status) const;
  bool MayMiss(const char* call, uint64_t offset, int order,
               memtuned_status status) const;

  WorkerProcess& process_;
  Slice& slice_;
  ThreadLine& line_;
  CallTimer timer_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_ACTOR_H_
