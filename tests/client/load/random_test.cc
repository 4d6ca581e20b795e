// SPDX-License-Identifier: Apache-2.0
// The parts of memtune-load that need no pool: numbers and rings.
#include "client/load/random.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <set>
#include <thread>

#include "client/load/ring.h"

namespace memtuned::load {
namespace {

TEST(RandomTest, TheSameSeedGivesTheSameSequenceForEver) {
  Random one(1, 0), again(1, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.Next(), again.Next());
  std::set<uint64_t> firsts;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t stream = 0; stream < 20; ++stream) {
      firsts.insert(Random(seed, stream).Next());
    }
  }
  EXPECT_EQ(firsts.size(), 400u);
}

TEST(RandomTest, BetweenReachesBothEndsAndNothingElse) {
  Random random(7, 3);
  std::set<uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Between(1, 6));
  EXPECT_EQ(seen, (std::set<uint32_t>{1, 2, 3, 4, 5, 6}));
}

class RingTest : public ::testing::Test {
 protected:
  RingTest()
      : memory_(new (std::align_val_t{64}) char[Ring::BytesFor(8)]),
        ring_(*new (memory_) Ring) {
    ring_.Init(8);
  }
  ~RingTest() override { operator delete[](memory_, std::align_val_t{64}); }

  char* memory_;
  Ring& ring_;
};

TEST_F(RingTest, HoldsItsEntriesInOrderAndNoMore) {
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(ring_.Push(i));
  EXPECT_FALSE(ring_.Push(8));

  uint64_t offset;
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(ring_.Pop(&offset));
    EXPECT_EQ(offset, i);
  }
  EXPECT_FALSE(ring_.Pop(&offset));
}

TEST_F(RingTest, PassesEverythingFromOneThreadToAnother) {
  constexpr uint64_t kMany = 200000;
  std::thread producer([this] {
    for (uint64_t i = 0; i < kMany; ++i) {
      while (!ring_.Push(i)) std::this_thread::yield();
    }
    ring_.Close();
  });
  uint64_t next = 0;
  for (;;) {
    const bool last = ring_.closed();
    uint64_t offset;
    if (ring_.Pop(&offset)) {
      ASSERT_EQ(offset, next++);
    } else if (last) {
      break;
    } else {
      std::this_thread::yield();
    }
  }
  producer.join();
  EXPECT_EQ(next, kMany);
}

}  // namespace
}  // namespace memtuned::load
