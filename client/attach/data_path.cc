// SPDX-License-Identifier: Apache-2.0
// The functions that programs call millions of times a second: addresses to
// page numbers and back around the core's front door. No text, no memory of
// their own, no exception.
#include <algorithm>
#include <array>
#include <bit>

#include "client/attach/include/memtuned/memtuned.h"
#include "client/attach/pool_state.h"
#include "core/allocator_fast.h"

namespace {

using memtuned::FreeResult;
using memtuned::Pfn;

// Blocks a bulk call hands to the core at once.
constexpr size_t kBulk = 64;

// The page number of an offset; a huge one when the offset is not a page's
// start. Rotating puts misaligned low bits on top.
inline uint64_t NumberOfOffset(uint64_t offset) {
  return std::rotr(offset, memtuned::kPageShift);
}

inline uint64_t NumberOf(const memtuned_pool* pool, const void* block) {
  return NumberOfOffset(reinterpret_cast<uintptr_t>(block) -
                        reinterpret_cast<uintptr_t>(pool->frames));
}

// kNil, which no pool has, for a huge one.
inline Pfn PfnOfNumber(uint64_t number) {
  return Pfn{number < memtuned::kNil ? static_cast<uint32_t>(number)
                                     : memtuned::kNil};
}

inline Pfn PfnOfOffset(uint64_t offset) {
  return PfnOfNumber(NumberOfOffset(offset));
}

inline Pfn PfnOf(const memtuned_pool* pool, const void* block) {
  return PfnOfNumber(NumberOf(pool, block));
}

inline void* AddressOf(const memtuned_pool* pool, Pfn pfn) {
  return pool->frames + (uint64_t{pfn.value} << memtuned::kPageShift);
}

// The core's results and the interface's statuses are the same numbers, so
// that memtuned_free ends in a jump.
constexpr bool Same(FreeResult result, memtuned_status status) {
  return static_cast<uint32_t>(result) == static_cast<uint32_t>(status);
}
static_assert(Same(FreeResult::kFreed, MEMTUNED_OK));
static_assert(Same(FreeResult::kNotAllocated, MEMTUNED_NOT_ALLOCATED));
static_assert(Same(FreeResult::kWrongOrder, MEMTUNED_WRONG_ORDER));
static_assert(Same(FreeResult::kForeign, MEMTUNED_FOREIGN));
static_assert(Same(FreeResult::kOutOfRange, MEMTUNED_OUT_OF_RANGE));
static_assert(Same(FreeResult::kNotAttached, MEMTUNED_NOT_ATTACHED));
static_assert(Same(FreeResult::kBusy, MEMTUNED_BUSY));
static_assert(Same(FreeResult::kProcessLimit, MEMTUNED_PROCESS_LIMIT));

inline memtuned_status StatusOf(FreeResult result) {
  return static_cast<memtuned_status>(result);
}

// Out of line, so that the fast path saves no register.
__attribute__((noinline)) void* AllocateSlow(memtuned_pool* pool,
                                             int order) noexcept {
  const Pfn pfn = pool->allocator.Allocate(order);
  return pfn.value != memtuned::kNil ? AddressOf(pool, pfn) : nullptr;
}

// Each order has a path for itself: less to compute, no register to save.
template <int kOrder>
inline void* AllocateOrder(memtuned_pool* pool) noexcept {
  const uint64_t page =
      pool->allocator.TakeFast(kOrder, memtuned::PageType::kOrdinary);
  return MEMTUNED_LIKELY(page != memtuned::Allocator::kNoPage)
             ? pool->frames + (page << memtuned::kPageShift)
             : AllocateSlow(pool, kOrder);
}

template <int kOrder>
inline memtuned_status FreeOrder(memtuned_pool* pool, void* block) noexcept {
  const uint64_t page = NumberOf(pool, block);
  memtuned::Allocator* allocator = &pool->allocator;
  // Else GCC keeps both addresses, and has to save a register.
  asm("" : "+r"(allocator));
  return StatusOf(allocator->FreeFast(page, kOrder));
}
static_assert(memtuned::kCostlyOrder == 3);

// Out of line, so that the way to order 0 has no branch that is taken.
__attribute__((noinline)) void* AllocateHigher(memtuned_pool* pool,
                                               int order) noexcept {
  if (order == 2) return AllocateOrder<2>(pool);
  if (order == 1) return AllocateOrder<1>(pool);
  return AllocateSlow(pool, order);
}

__attribute__((noinline)) memtuned_status FreeHigher(memtuned_pool* pool,
                                                     void* block,
                                                     int order) noexcept {
  if (order == 2) return FreeOrder<2>(pool, block);
  if (order == 1) return FreeOrder<1>(pool, block);
  return StatusOf(pool->allocator.Free(PfnOf(pool, block), order));
}

}  // namespace

void* memtuned_allocate(memtuned_pool* pool, int order) noexcept {
  if (MEMTUNED_UNLIKELY(pool == nullptr)) return nullptr;
  if (MEMTUNED_LIKELY(order == 0)) return AllocateOrder<0>(pool);
  if (MEMTUNED_LIKELY(order == 3)) return AllocateOrder<3>(pool);
  return AllocateHigher(pool, order);
}

memtuned_status memtuned_free(memtuned_pool* pool, void* block,
                              int order) noexcept {
  if (MEMTUNED_UNLIKELY(pool == nullptr)) return MEMTUNED_INVALID_ARGUMENT;
  if (MEMTUNED_LIKELY(order == 0)) return FreeOrder<0>(pool, block);
  if (MEMTUNED_LIKELY(order == 3)) return FreeOrder<3>(pool, block);
  return FreeHigher(pool, block, order);
}

size_t memtuned_allocate_bulk(memtuned_pool* pool, int order, void** blocks,
                              size_t count) noexcept {
  if (pool == nullptr || blocks == nullptr) return 0;
  size_t filled = 0;
  while (filled < count) {
    std::array<Pfn, kBulk> pfns;
    const size_t want = std::min(kBulk, count - filled);
    const size_t got = pool->allocator.AllocateBulk(order, {pfns.data(), want});
    for (size_t i = 0; i < got; ++i) {
      blocks[filled + i] = AddressOf(pool, pfns[i]);
    }
    filled += got;
    if (got < want) break;
  }
  return filled;
}

size_t memtuned_free_bulk(memtuned_pool* pool, int order, void* const* blocks,
                          size_t count) noexcept {
  if (pool == nullptr || blocks == nullptr) return 0;
  size_t freed = 0;
  for (size_t done = 0; done < count;) {
    std::array<Pfn, kBulk> pfns;
    const size_t now = std::min(kBulk, count - done);
    for (size_t i = 0; i < now; ++i) pfns[i] = PfnOf(pool, blocks[done + i]);
    freed += pool->allocator.FreeBulk(order, {pfns.data(), now});
    done += now;
  }
  return freed;
}

uint64_t memtuned_to_offset(const memtuned_pool* pool,
                            const void* address) noexcept {
  if (pool == nullptr) return MEMTUNED_NO_OFFSET;
  const uint64_t offset = reinterpret_cast<uintptr_t>(address) -
                          reinterpret_cast<uintptr_t>(pool->frames);
  return offset < pool->frames_bytes ? offset : MEMTUNED_NO_OFFSET;
}

void* memtuned_from_offset(const memtuned_pool* pool,
                           uint64_t offset) noexcept {
  if (pool == nullptr || offset >= pool->frames_bytes) return nullptr;
  return pool->frames + offset;
}

memtuned_status memtuned_offer(memtuned_pool* pool, uint64_t offset, int order,
                               uint32_t target) noexcept {
  if (pool == nullptr) return MEMTUNED_INVALID_ARGUMENT;
  return StatusOf(pool->allocator.Offer(PfnOfOffset(offset), order, target));
}

memtuned_status memtuned_revoke(memtuned_pool* pool, uint64_t offset,
                                int order) noexcept {
  if (pool == nullptr) return MEMTUNED_INVALID_ARGUMENT;
  return StatusOf(pool->allocator.Revoke(PfnOfOffset(offset), order));
}

memtuned_status memtuned_adopt(memtuned_pool* pool, uint64_t offset,
                               int order) noexcept {
  if (pool == nullptr) return MEMTUNED_INVALID_ARGUMENT;
  return StatusOf(pool->allocator.Adopt(PfnOfOffset(offset), order));
}

memtuned_status memtuned_free_adopted(memtuned_pool* pool, uint64_t offset,
                                      int order) noexcept {
  if (pool == nullptr) return MEMTUNED_INVALID_ARGUMENT;
  return StatusOf(pool->allocator.FreeAdopted(PfnOfOffset(offset), order));
}

memtuned_status memtuned_set_label(memtuned_pool* pool, void* block, int order,
                                   uint8_t label) noexcept {
  if (pool == nullptr) return MEMTUNED_INVALID_ARGUMENT;
  return StatusOf(pool->allocator.SetLabel(PfnOf(pool, block), order, label));
}
