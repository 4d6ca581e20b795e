// SPDX-License-Identifier: Apache-2.0
// A ring of block offsets in shared memory with one producer and one
// consumer, which are threads or processes. Never waits.
#ifndef MEMTUNED_CLIENT_LOAD_RING_H_
#define MEMTUNED_CLIENT_LOAD_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memtuned::load {

// The entries follow the object in memory: place it in BytesFor(entries) that
// are zero.
class Ring {
 public:
  static constexpr size_t BytesFor(uint32_t entries) {
    return (sizeof(Ring) + entries * sizeof(uint64_t) + 63) / 64 * 64;
  }
  // REQUIRES: `entries` is a power of two; nobody uses the ring yet.
  void Init(uint32_t entries) { mask_ = entries - 1; }

  // Returns: false when it is full.
  bool Push(uint64_t offset) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    // Pairs with the release in Pop: the entry has been read.
    if (tail - head_.load(std::memory_order_acquire) > mask_) return false;
    entries()[tail & mask_] = offset;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  // Returns: false when it is empty.
  bool Pop(uint64_t* offset) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    // Pairs with the release in Push: the entry has been written.
    if (head == tail_.load(std::memory_order_acquire)) return false;
    *offset = entries()[head & mask_];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // The producer will push no more.
  void Close() { closed_.store(true, std::memory_order_release); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  uint64_t* entries() { return reinterpret_cast<uint64_t*>(this + 1); }

  uint32_t mask_ = 0;
  std::atomic<bool> closed_{false};
  alignas(64) std::atomic<uint32_t> head_{0};  // written by the consumer
  alignas(64) std::atomic<uint32_t> tail_{0};  // written by the producer
};

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_RING_H_
