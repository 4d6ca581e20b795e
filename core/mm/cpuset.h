// SPDX-License-Identifier: Apache-2.0
// mems_allowed: the nodes a process may allocate from, and its memory policy.
// Two copies under one {sequence, index} word: the writer fills the idle copy
// and flips the word with one store. There is no odd state in which a killed
// writer could leave readers waiting. A reader keeps the word as its cookie;
// an allocation that succeeds never looks at it again, one that would fail
// compares it and starts over when it moved. Floor 1.
#ifndef MEMTUNED_CORE_MM_CPUSET_H_
#define MEMTUNED_CORE_MM_CPUSET_H_

#include <array>
#include <cstdint>

#include "core/base/node_mask.h"
#include "core/base/shm.h"

namespace memtuned {

enum class MemoryPolicy : uint32_t {
  kLocal = 0,       // the running CPU's node first, then by distance
  kBind = 1,        // only the given nodes
  kPreferred = 2,   // the given node first, then by distance from it
  kInterleave = 3,  // the given nodes in turn
};
inline constexpr int kNumMemoryPolicies = 4;

// One copy. Words are atomics: a reader may look while the copy after next is
// being written; what it then sees is settled by the cookie.
struct MemsCopy {
  std::array<Shared64, NodeMask::kWords> allowed;  // nodes walked
  std::array<Shared64, NodeMask::kWords> policy_nodes;
  Shared32 policy;
  Shared32 preferred;  // os index, kPreferred only
};

struct MemsAllowed {
  // sequence << 3 | limited << 2 | restricted << 1 | index of the copy in
  // force. Not restricted: all nodes, policy local; the copy need not be read.
  // Limited: the process may hold so many pages (core/process_limit.h).
  Shared32 word;
  // What was asked for (core/process_mems.h), by an operator and by the process
  // itself, and for whom: of another process in the slot it says nothing.
  // Under the tuning lock. The operator's is one of two copies, by one word,
  // owner << 32 | index: a writer that dies leaves the old one.
  Shared32 policy_owner;
  Shared32 requested_policy;
  uint32_t reserved;
  Shared64 cpuset_word;
  std::array<NodeMask, 2> cpusets;
  NodeMask requested;
  std::array<MemsCopy, 2> copies;
};

using MemsCookie = uint32_t;
inline constexpr MemsCookie kMemsRestricted = 2;
inline constexpr MemsCookie kMemsLimited = 4;
inline constexpr int kMemsFlagBits = 3;

// A consistent-enough view: the copy in force when the cookie was taken.
inline MemsCookie ReadMemsAllowedBegin(const MemsAllowed& mems) {
  // Pairs with the release in WriteMemsAllowed.
  return Load(mems.word);
}
inline const MemsCopy& CopyOf(const MemsAllowed& mems, MemsCookie cookie) {
  return mems.copies[cookie & 1];
}
// Returns: true when the mask changed since the cookie was taken, so that a
// would-be failure must be tried again.
inline bool ReadMemsAllowedRetry(const MemsAllowed& mems, MemsCookie cookie) {
  return Load(mems.word) != cookie;
}

// Acquire, so that ReadMemsAllowedRetry after it cannot be answered from before
// the copy was overwritten. On x86-64 a plain load.
inline bool Allows(const MemsCopy& copy, uint32_t node) {
  return (Load(copy.allowed[node / 64]) >> (node % 64) & 1) != 0;
}
inline bool PolicyNames(const MemsCopy& copy, uint32_t node) {
  return (Load(copy.policy_nodes[node / 64]) >> (node % 64) & 1) != 0;
}
// Whether a process runs policy local and may use `node`: the fast path.
inline bool AllowsLocally(const MemsAllowed& mems, MemsCookie cookie,
                          uint32_t node) {
  if ((cookie & kMemsRestricted) == 0) return true;
  const MemsCopy& copy = CopyOf(mems, cookie);
  return LoadRelaxed(copy.policy) == 0 && Allows(copy, node);
}

// Publishes a new mask and policy; whether it is limited stays as it is.
// REQUIRES: one writer at a time (the tuning lock).
void WriteMemsAllowed(MemsAllowed& mems, const NodeMask& allowed,
                      MemoryPolicy policy, const NodeMask& policy_nodes,
                      uint32_t preferred);

// Publishes whether a process has a limit, which is `limit` itself: 0 for
// none. An allocation that would fail starts over.
// Thread safety: any number of writers; the last one's limit is what counts.
void WriteLimited(MemsAllowed& mems, const Shared64& limit);

NodeMask AllowedMask(const MemsAllowed& mems);

}  // namespace memtuned

#endif  // MEMTUNED_CORE_MM_CPUSET_H_
