// SPDX-License-Identifier: Apache-2.0
#include "core/base/shm_lock.h"

namespace memtuned {

int LockWaitBucket(uint64_t wait_ns) {
  // 250 ns, then times 4: the first bound above the wait.
  uint64_t bound = 250;
  for (int i = 0; i < kLockWaitBuckets - 1; ++i) {
    if (wait_ns <= bound) return i;
    bound = i == 0 ? 1000 : (i == 5 ? 1000000 : bound * 4);
  }
  return kLockWaitBuckets - 1;
}

#ifndef NDEBUG
namespace {

// Ranks held, a small stack. Per fiber in the virtual build.
struct HeldRanks {
  uint8_t rank[8];
  int depth = 0;
};

#ifdef MEMTUNED_VIRTUAL
HeldRanks held_by_fiber[env::kMaxVirtualCpus];
#endif

HeldRanks& Held() {
#ifdef MEMTUNED_VIRTUAL
  return held_by_fiber[env::CurrentFiber()];
#else
  static thread_local HeldRanks held;
  return held;
#endif
}

}  // namespace

void CheckRankAcquire(LockRank rank) {
  HeldRanks& held = Held();
  const auto value = static_cast<uint8_t>(rank);
  if (held.depth > 0) {
    CHECK_WITH(held.rank[held.depth - 1] > value, held.rank[held.depth - 1],
               value);
  }
  CHECK(held.depth < 8);
  held.rank[held.depth++] = value;
}

void CheckRankRelease(LockRank rank) {
  HeldRanks& held = Held();
  CHECK(held.depth > 0);
  CHECK_WITH(held.rank[held.depth - 1] == static_cast<uint8_t>(rank),
             held.rank[held.depth - 1], static_cast<int>(rank));
  --held.depth;
}

#ifdef MEMTUNED_VIRTUAL
void ForgetRanksOf(uint32_t fiber) { held_by_fiber[fiber].depth = 0; }
#endif
#endif

}  // namespace memtuned
