// SPDX-License-Identifier: Apache-2.0
// libmemtuned, C++20 interface: memtuned.h with ownership, and a
// std::pmr::memory_resource over it. Header only, so nothing of a compiler's
// C++ ABI crosses the library's border; no exception does either, except the
// std::bad_alloc that a memory_resource owes its caller.
//
//   auto pool = memtuned::Pool::Attach("/run/memtuned/pools/default.sock");
//   if (!pool) {
//     std::cerr << pool.error().message() << "\n";
//     return 1;
//   }
//   memtuned::PoolResource pages(*pool);
//   std::pmr::synchronized_pool_resource small(
//       {.max_blocks_per_chunk = 0, .largest_required_pool_block = 2048},
//       &pages);
//   std::pmr::unordered_map<int, std::pmr::string> table(&small);
//
// The pool_resource cuts pages into small objects; what it asks for in larger
// pieces comes from the memtuned pool, and pieces below a page or above 4 MiB
// come from PoolResource's upstream.
#ifndef MEMTUNED_POOL_H_
#define MEMTUNED_POOL_H_

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "memtuned.h"

namespace memtuned {

// What happened: ok, or a status and one sentence for people.
// Thread safety: as a plain value.
class [[nodiscard]] Error {
 public:
  Error() = default;
  explicit Error(memtuned_status status)
      : status_(status), message_(memtuned_strerror(status)) {}
  explicit Error(const memtuned_error& error)
      : status_(error.status), message_(error.message) {}

  bool ok() const { return status_ == MEMTUNED_OK; }
  memtuned_status status() const { return status_; }
  const std::string& message() const { return message_; }

 private:
  memtuned_status status_ = MEMTUNED_OK;
  std::string message_;
};

// A value, or the error that took its place.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_; }
  // REQUIRES: ok().
  T& operator*() & { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }

 private:
  std::optional<T> value_;
  Error error_;
};

// This process's attachment to a pool; leaves it when destroyed. Move only.
// The functions are those of memtuned.h, which says what each does; the data
// path returns the bare status and allocates nothing.
// Thread safety: any thread, except moving and destroying.
class Pool {
 public:
  enum class MemoryPolicy {
    kLocal = MEMTUNED_POLICY_LOCAL,
    kBind = MEMTUNED_POLICY_BIND,
    kPreferred = MEMTUNED_POLICY_PREFERRED,
    kInterleave = MEMTUNED_POLICY_INTERLEAVE,
  };
  static constexpr int kMaxOrder = MEMTUNED_MAX_ORDER;
  static constexpr uint64_t kNoOffset = MEMTUNED_NO_OFFSET;

  // Blocks: until the daemon answered, at most `timeout`.
  static Result<Pool> Attach(
      const std::string& socket_path,
      std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
    return Attach(socket_path, timeout, 0);
  }

  // To read only: see MEMTUNED_ATTACH_TO_READ. Blocks: as Attach.
  static Result<Pool> AttachToRead(
      const std::string& socket_path,
      std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
    return Attach(socket_path, timeout, MEMTUNED_ATTACH_TO_READ);
  }

  ~Pool() { memtuned_detach(pool_); }
  Pool(Pool&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  Pool& operator=(Pool&& other) noexcept {
    std::swap(pool_, other.pool_);
    return *this;
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  bool attached() const noexcept { return memtuned_is_attached(pool_) != 0; }
  std::string name() const { return memtuned_pool_name(pool_); }
  uint64_t bytes() const noexcept { return memtuned_pool_bytes(pool_); }
  uint32_t process_id() const noexcept { return memtuned_process_id(pool_); }

  void* Allocate(int order) noexcept { return memtuned_allocate(pool_, order); }
  memtuned_status Free(void* block, int order) noexcept {
    return memtuned_free(pool_, block, order);
  }
  size_t AllocateBulk(int order, std::span<void*> blocks) noexcept {
    return memtuned_allocate_bulk(pool_, order, blocks.data(), blocks.size());
  }
  size_t FreeBulk(int order, std::span<void* const> blocks) noexcept {
    return memtuned_free_bulk(pool_, order, blocks.data(), blocks.size());
  }

  uint64_t ToOffset(const void* address) const noexcept {
    return memtuned_to_offset(pool_, address);
  }
  void* FromOffset(uint64_t offset) const noexcept {
    return memtuned_from_offset(pool_, offset);
  }
  memtuned_status Offer(uint64_t offset, int order,
                        uint32_t target = 0) noexcept {
    return memtuned_offer(pool_, offset, order, target);
  }
  memtuned_status Revoke(uint64_t offset, int order) noexcept {
    return memtuned_revoke(pool_, offset, order);
  }
  memtuned_status Adopt(uint64_t offset, int order) noexcept {
    return memtuned_adopt(pool_, offset, order);
  }
  memtuned_status FreeAdopted(uint64_t offset, int order) noexcept {
    return memtuned_free_adopted(pool_, offset, order);
  }
  memtuned_status SetLabel(void* block, int order, uint8_t label) noexcept {
    return memtuned_set_label(pool_, block, order, label);
  }

  Error SetMemoryPolicy(MemoryPolicy policy, std::span<const int> nodes = {}) {
    memtuned_error error;
    const memtuned_status status = memtuned_set_memory_policy(
        pool_, static_cast<int>(policy), nodes.data(), nodes.size(), &error);
    return status == MEMTUNED_OK ? Error() : Error(error);
  }

  // For calls of the C interface; stays this object's.
  memtuned_pool* handle() const noexcept { return pool_; }

 private:
  explicit Pool(memtuned_pool* pool) : pool_(pool) {}

  static Result<Pool> Attach(const std::string& socket_path,
                             std::chrono::milliseconds timeout,
                             uint32_t flags) {
    memtuned_attach_options options = {};
    if (timeout.count() <= 0 || timeout.count() > UINT32_MAX) {
      return Error(MEMTUNED_INVALID_ARGUMENT);
    }
    options.timeout_ms = static_cast<uint32_t>(timeout.count());
    options.flags = flags;
    memtuned_pool* pool = nullptr;
    memtuned_error error;
    if (memtuned_attach(socket_path.c_str(), &options, &pool, &error) !=
        MEMTUNED_OK) {
      return Error(error);
    }
    return Pool(pool);
  }

  memtuned_pool* pool_;
};

struct PoolResourceOptions {
  // Serves requests below a page and above 4 MiB.
  std::pmr::memory_resource* upstream = std::pmr::get_default_resource();
  // Fills each allocation with zeroes: frames of a pool were in other
  // processes' hands. Costs one pass over the memory.
  bool zero_on_alloc = false;
};

// A memory_resource over a pool. Each request becomes one block: the order
// follows from the larger of size and alignment, so ask for powers of two.
// Throws std::bad_alloc when the pool has no memory. Freeing what is no
// longer this process's (a forked child's copy of its parent's containers) is
// refused and counted by the pool, and does nothing.
// Invariants: the pool's attachment outlives this and all it allocated; the
// Pool object itself may move.
// Thread safety: any thread, if upstream is.
class PoolResource : public std::pmr::memory_resource {
 public:
  using Options = PoolResourceOptions;

  explicit PoolResource(const Pool& pool, Options options = {})
      : pool_(pool.handle()), options_(options) {}

  std::pmr::memory_resource* upstream_resource() const {
    return options_.upstream;
  }

  // Order of the block for a request, -1: upstream's.
  static constexpr int OrderOf(size_t bytes, size_t alignment) noexcept {
    const size_t size = bytes > alignment ? bytes : alignment;
    if (bytes < kPageBytes || size > kLargestBytes) return -1;
    return static_cast<int>(std::bit_width((size - 1) / kPageBytes));
  }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kLargestBytes = kPageBytes << MEMTUNED_MAX_ORDER;

  void* do_allocate(size_t bytes, size_t alignment) override {
    const int order = OrderOf(bytes, alignment);
    void* block = order < 0 ? options_.upstream->allocate(bytes, alignment)
                            : memtuned_allocate(pool_, order);
    if (block == nullptr) throw std::bad_alloc();
    if (options_.zero_on_alloc) std::memset(block, 0, bytes);
    return block;
  }

  void do_deallocate(void* block, size_t bytes, size_t alignment) override {
    const int order = OrderOf(bytes, alignment);
    if (order < 0) {
      options_.upstream->deallocate(block, bytes, alignment);
    } else {
      (void)memtuned_free(pool_, block, order);
    }
  }

  // Equal when either frees what the other allocated.
  bool do_is_equal(
      const std::pmr::memory_resource& other) const noexcept override {
    const auto* resource = dynamic_cast<const PoolResource*>(&other);
    return resource != nullptr && resource->pool_ == pool_ &&
           resource->options_.upstream->is_equal(*options_.upstream);
  }

  memtuned_pool* pool_;
  Options options_;
};

}  // namespace memtuned

#endif  // MEMTUNED_POOL_H_
