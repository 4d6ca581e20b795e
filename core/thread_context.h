// SPDX-License-Identifier: Apache-2.0
// Finding the ThreadContext of the running thread for one pool: one
// thread-local comparison on the fast path. In the virtual build, that of the
// running fiber. Floor 2.
#ifndef MEMTUNED_CORE_THREAD_CONTEXT_H_
#define MEMTUNED_CORE_THREAD_CONTEXT_H_

#include <cstdint>

#include "core/base/check.h"
#include "core/segment.h"

namespace memtuned {

class Allocator;

// The pool this thread used last.
struct LastUsed {
  uint64_t registry = 0;  // ThreadRegistry::id_, never reused
  ThreadContext* context = nullptr;
};
extern constinit thread_local LastUsed tls_last_used
    __attribute__((tls_model("initial-exec")));

// All threads' contexts of one Allocator.
// Thread safety: any thread.
class ThreadRegistry {
 public:
  ThreadRegistry(Segment& segment, ProcessOwner process);
  ~ThreadRegistry();
  ThreadRegistry(const ThreadRegistry&) = delete;
  ThreadRegistry& operator=(const ThreadRegistry&) = delete;

  ThreadContext& Current() {
#ifndef MEMTUNED_VIRTUAL
    if (MEMTUNED_LIKELY(tls_last_used.registry == id_)) {
      return *tls_last_used.context;
    }
#endif
    return CurrentSlow();
  }

 private:
  friend struct ThreadContexts;
  ThreadContext& CurrentSlow();
  void Fill(ThreadContext& context);
  void FillProcess(ThreadContext& context);

  const uint64_t id_;
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
