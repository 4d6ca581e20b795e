// SPDX-License-Identifier: Apache-2.0
// What a program asks for now and then: names, sizes, memory policy.
#include <exception>

#include "absl/strings/str_cat.h"
#include "client/attach/error.h"
#include "client/attach/include/memtuned/memtuned.h"
#include "client/attach/pool_state.h"

namespace {

using memtuned::attach::Outcome;
using memtuned::attach::Report;

Outcome Invalid(const std::string& message) {
  return {MEMTUNED_INVALID_ARGUMENT, message};
}

Outcome ReadNodes(const int* nodes, size_t nr_nodes, memtuned::NodeMask* mask) {
  if (nr_nodes != 0 && nodes == nullptr) return Invalid("nodes is NULL");
  for (size_t i = 0; i < nr_nodes; ++i) {
    if (nodes[i] < 0 || nodes[i] >= memtuned::NodeMask::kBits) {
      return Invalid(absl::StrCat("nodes[", i, "] is ", nodes[i],
                                  "; allowed 0 to ",
                                  memtuned::NodeMask::kBits - 1));
    }
    mask->Set(nodes[i]);
  }
  return {};
}

Outcome SetPolicy(memtuned_pool* pool, int policy, const int* nodes,
                  size_t nr_nodes) {
  if (pool == nullptr) return Invalid("pool is NULL");
  if (policy < 0 || policy >= memtuned::kNumMemoryPolicies) {
    return Invalid(absl::StrCat("policy is ", policy,
                                "; allowed 0 (local), 1 (bind), 2 "
                                "(preferred), 3 (interleave)"));
  }
  memtuned::NodeMask mask;
  if (policy != MEMTUNED_POLICY_LOCAL) {
    if (Outcome read = ReadNodes(nodes, nr_nodes, &mask); !read.ok()) {
      return read;
    }
  }
  if (pool->allocator.detached()) {
    return {MEMTUNED_NOT_ATTACHED,
            "this process is a forked child of the one that attached, or "
            "attached to read only"};
  }
  const absl::Status status = pool->allocator.SetMemoryPolicy(
      static_cast<memtuned::MemoryPolicy>(policy), mask);
  if (status.code() == absl::StatusCode::kUnavailable) {
    return {MEMTUNED_BUSY, absl::StrCat(status.message())};
  }
  return status.ok() ? Outcome{} : Invalid(absl::StrCat(status.message()));
}

}  // namespace

const char* memtuned_strerror(int status) noexcept {
  switch (status) {
    case MEMTUNED_OK:
      return "ok";
    case MEMTUNED_INVALID_ARGUMENT:
      return "invalid argument";
    case MEMTUNED_NOT_ALLOCATED:
      return "block is not allocated";
    case MEMTUNED_WRONG_ORDER:
      return "wrong order";
    case MEMTUNED_FOREIGN:
      return "block of another process";
    case MEMTUNED_OUT_OF_RANGE:
      return "not a block of the pool";
    case MEMTUNED_NOT_ATTACHED:
      return "not attached";
    case MEMTUNED_UNAVAILABLE:
      return "daemon unavailable";
    case MEMTUNED_PERMISSION_DENIED:
      return "permission denied";
    case MEMTUNED_LAYOUT_DIFFERS:
      return "layout differs";
    case MEMTUNED_POOL_FULL:
      return "no process slot is free";
    case MEMTUNED_DEADLINE_EXCEEDED:
      return "deadline exceeded";
    case MEMTUNED_BAD_REPLY:
      return "bad reply";
    case MEMTUNED_NO_RESOURCES:
      return "out of descriptors or memory";
    case MEMTUNED_BUSY:
      return "held up by a stopped process";
    case MEMTUNED_PROCESS_LIMIT:
      return "the process may not hold more";
  }
  return "unknown status";
}

size_t memtuned_page_size(void) noexcept { return memtuned::kPageSizeBytes; }

int memtuned_is_attached(const memtuned_pool* pool) noexcept {
  return pool != nullptr && !pool->allocator.detached() ? 1 : 0;
}

const char* memtuned_pool_name(const memtuned_pool* pool) noexcept {
  return pool == nullptr ? "" : pool->name.data();
}

uint64_t memtuned_pool_bytes(const memtuned_pool* pool) noexcept {
  return pool == nullptr ? 0 : pool->frames_bytes;
}

uint32_t memtuned_process_id(const memtuned_pool* pool) noexcept {
  return pool == nullptr ? 0 : pool->allocator.owner();
}

memtuned_status memtuned_set_memory_policy(memtuned_pool* pool, int policy,
                                           const int* nodes, size_t nr_nodes,
                                           memtuned_error* error) noexcept {
  try {
    return Report(SetPolicy(pool, policy, nodes, nr_nodes), error);
  } catch (const std::exception& e) {
    return Report({MEMTUNED_NO_RESOURCES, e.what()}, error);
  }
}
