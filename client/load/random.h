// SPDX-License-Identifier: Apache-2.0
// A small generator whose sequence depends on its seed alone, on any machine.
#ifndef MEMTUNED_CLIENT_LOAD_RANDOM_H_
#define MEMTUNED_CLIENT_LOAD_RANDOM_H_

#include <cstdint>

namespace memtuned::load {

// SplitMix64. Thread safety: its owner's only.
class Random {
 public:
  // `stream`: another sequence for each worker of one seed.
  Random(uint64_t seed, uint64_t stream)
      : state_(seed * 0x9e3779b97f4a7c15ull ^ (stream + 1) << 32) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  // Both ends included.
  uint32_t Between(uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(Next() % (high - low + 1));
  }

 private:
  uint64_t state_;
};

}  // namespace memtuned::load

#endif  // MEMTUNED_CLIENT_LOAD_RANDOM_H_
