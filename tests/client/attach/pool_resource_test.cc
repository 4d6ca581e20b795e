// SPDX-License-Identifier: Apache-2.0
// Containers of the standard library in a pool.
#include <gmock/gmock.h>

#include <algorithm>
#include <list>
#include <memory_resource>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "memtuned/pool.h"
#include "tests/client/attach/child_process.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::test {
namespace {

// Counts what goes upstream.
class CountingResource : public std::pmr::memory_resource {
 public:
  std::atomic<size_t> allocations = 0, bytes_held = 0;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    ++allocations;
    bytes_held += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, size_t bytes, size_t alignment) override {
    bytes_held -= bytes;
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

class PoolResourceTest : public ::testing::Test {
 protected:
  PoolResourceTest() : attached_(Pool::Attach(server_.path())) {}
  Pool& pool() { return *attached_; }

  AttachTestServer server_;
  Result<Pool> attached_;
  CountingResource upstream_;
};

TEST_F(PoolResourceTest, OrderFollowsFromSizeAndAlignment) {
  static_assert(PoolResource::OrderOf(0, 1) == -1);
  static_assert(PoolResource::OrderOf(4095, 4096) == -1);
  static_assert(PoolResource::OrderOf(4096, 1) == 0);
  static_assert(PoolResource::OrderOf(4097, 1) == 1);
  static_assert(PoolResource::OrderOf(4096, 65536) == 4);
  static_assert(PoolResource::OrderOf(12288, 8) == 2);
  static_assert(PoolResource::OrderOf(4u << 20, 8) == 10);
  static_assert(PoolResource::OrderOf((4u << 20) + 1, 8) == -1);
  static_assert(PoolResource::OrderOf(4096, 8u << 20) == -1);
  PoolResource resource(pool(), {.upstream = &upstream_});
  for (size_t alignment = 1; alignment <= 4u << 20; alignment *= 2) {
    void* block = resource.allocate(4096, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    EXPECT_NE(pool().ToOffset(block), Pool::kNoOffset);
    resource.deallocate(block, 4096, alignment);
  }
  EXPECT_EQ(server_.AllocatedPages(), 0u);
  EXPECT_EQ(upstream_.allocations, 0u);
}

TEST_F(PoolResourceTest, SmallAndHugeRequestsGoUpstream) {
  PoolResource resource(pool(), {.upstream = &upstream_});

  void* small = resource.allocate(100, 8);
  void* huge = resource.allocate(5u << 20, 8);

  EXPECT_EQ(upstream_.allocations, 2u);
  EXPECT_EQ(pool().ToOffset(small), Pool::kNoOffset);
  resource.deallocate(small, 100, 8);
  resource.deallocate(huge, 5u << 20, 8);
  EXPECT_EQ(upstream_.bytes_held, 0u);
}

TEST_F(PoolResourceTest, ZeroesOnRequest) {
  auto* dirty = static_cast<char*>(pool().Allocate(0));
  std::memset(dirty, 0xff, 4096);
  ASSERT_EQ(pool().Free(dirty, 0), MEMTUNED_OK);
  PoolResource resource(pool(), {.zero_on_alloc = true});

  auto* clean = static_cast<char*>(resource.allocate(4096, 8));

  EXPECT_TRUE(std::all_of(clean, clean + 4096, [](char c) { return c == 0; }));
  resource.deallocate(clean, 4096, 8);
}

TEST_F(PoolResourceTest, ThrowsBadAllocWhenThePoolIsEmpty) {
  PoolResource resource(pool());
  std::pmr::list<std::vector<void*>> kept;
  std::vector<void*> blocks;
  EXPECT_THROW(
      {
        for (;;) blocks.push_back(resource.allocate(1u << 20, 8));
      },
      std::bad_alloc);
  EXPECT_GT(blocks.size(), 30u);
  for (void* block : blocks) resource.deallocate(block, 1u << 20, 8);
  EXPECT_EQ(server_.AllocatedPages(), 0u);
}

TEST_F(PoolResourceTest, EqualWhenEitherFreesTheOthersMemory) {
  auto other_pool = Pool::Attach(server_.path());
  PoolResource one(pool(), {.upstream = &upstream_});
  PoolResource same(pool(), {.upstream = &upstream_, .zero_on_alloc = true});
  PoolResource other_upstream(pool());
  PoolResource other(*other_pool, {.upstream = &upstream_});

  EXPECT_TRUE(one.is_equal(one));
  EXPECT_TRUE(one.is_equal(same));
  EXPECT_FALSE(one.is_equal(other_upstream));
  EXPECT_FALSE(one.is_equal(other));
  EXPECT_FALSE(one.is_equal(upstream_));
}

TEST_F(PoolResourceTest, ContainersOfManyThreadsOverAPoolResource) {
  {
    PoolResource pages(pool(), {.upstream = &upstream_});
    std::pmr::synchronized_pool_resource small(
        {.max_blocks_per_chunk = 0, .largest_required_pool_block = 2048},
        &pages);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::pmr::unordered_map<int, std::pmr::string> table(&small);
        std::pmr::vector<uint64_t> numbers(&small);
        for (int i = 0; i < 3000; ++i) {
          table[i] = std::string(static_cast<size_t>(i % 97), 'a' + t);
          numbers.push_back(static_cast<uint64_t>(i) * 1000 + t);
          if (i % 3 == 0) table.erase(i / 2);
        }
        EXPECT_NE(pool().ToOffset(numbers.data()), Pool::kNoOffset);
        EXPECT_GT(server_.AllocatedPages(), 0u);
        for (auto& [key, text] : table) {
          EXPECT_EQ(std::string(text),
                    std::string(static_cast<size_t>(key % 97), 'a' + t));
        }
        for (size_t i = 0; i < numbers.size(); ++i) {
          EXPECT_EQ(numbers[i], i * 1000 + static_cast<uint64_t>(t));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(server_.AllocatedPages(), 0u);
  EXPECT_EQ(upstream_.bytes_held, 0u);
}

TEST_F(PoolResourceTest, AChildsCopyOfAContainerDiesQuietly) {
  PoolResource pages(pool());
  std::pmr::vector<char> bytes(100000, 'x', &pages);

  const int code = RunInChild([&] {
    CHILD_CHECK(bytes[99999] == 'x');
    std::pmr::vector<char> mine(std::move(bytes));
    return 0;
  });

  EXPECT_EQ(code, 0);
  EXPECT_EQ(server_.AllocatedPages(), 32u);
  EXPECT_EQ(server_.Refused(FreeResult::kNotAttached), 1u);
  EXPECT_EQ(bytes[99999], 'x');
}

}  // namespace
}  // namespace memtuned::test
