// SPDX-License-Identifier: Apache-2.0
// What a program may get wrong with a block: refused, counted, no effect.
#include <gmock/gmock.h>

#include <vector>

#include "core/segment.h"
#include "memtuned/memtuned.h"
#include "memtuned/pool.h"
#include "tests/client/attach/child_process.h"
#include "tests/support/attach_test_server.h"

extern "C" int UseCInterface(const char* path);

namespace memtuned::test {
namespace {

class FreeTest : public ::testing::Test {
 protected:
  FreeTest() : attached_(Pool::Attach(server_.path())) {}
  Pool& pool() { return *attached_; }
  // The reason's counter moves by one, the pages held not at all.
  void ExpectRefused(memtuned_status status, memtuned_status expected,
                     FreeResult reason, uint64_t counted_before) {
    EXPECT_EQ(status, expected);
    EXPECT_EQ(server_.Refused(reason), counted_before + 1);
    EXPECT_EQ(server_.AllocatedPages(), held_);
  }

  AttachTestServer server_;
  Result<Pool> attached_;
  uint64_t held_ = 0;
};

TEST_F(FreeTest, TheWholeCInterfaceFromC) {
  EXPECT_EQ(UseCInterface(server_.path().c_str()), 0);
}

TEST_F(FreeTest, DoubleFree) {
  void* block = pool().Allocate(1);
  ASSERT_EQ(pool().Free(block, 1), MEMTUNED_OK);

  ExpectRefused(pool().Free(block, 1), MEMTUNED_NOT_ALLOCATED,
                FreeResult::kNotAllocated, 0);
}

TEST_F(FreeTest, WildPointers) {
  auto* block = static_cast<char*>(pool().Allocate(3));
  held_ = 8;
  int local = 0;
  char* past_the_end =
      static_cast<char*>(pool().FromOffset(0)) + pool().bytes();
  const std::vector<void*> wild = {nullptr,
                                   &local,
                                   block + 1,
                                   block + 4095,
                                   block - 1,
                                   past_the_end,
                                   past_the_end + 4096,
                                   reinterpret_cast<void*>(UINTPTR_MAX)};
  for (size_t i = 0; i < wild.size(); ++i) {
    ExpectRefused(pool().Free(wild[i], 0), MEMTUNED_OUT_OF_RANGE,
                  FreeResult::kOutOfRange, i);
  }

  // Inside the block, aligned to the order that is claimed.
  ExpectRefused(pool().Free(block + 4096, 0), MEMTUNED_NOT_ALLOCATED,
                FreeResult::kNotAllocated, 0);
  // Not aligned to the order that is claimed.
  ExpectRefused(pool().Free(block + 4096, 3), MEMTUNED_OUT_OF_RANGE,
                FreeResult::kOutOfRange, wild.size());
  EXPECT_EQ(pool().Free(block, 3), MEMTUNED_OK);
}

TEST_F(FreeTest, WrongOrder) {
  void* block = pool().Allocate(3);
  held_ = 8;

  ExpectRefused(pool().Free(block, 2), MEMTUNED_WRONG_ORDER,
                FreeResult::kWrongOrder, 0);
  ExpectRefused(pool().Free(block, 0), MEMTUNED_WRONG_ORDER,
                FreeResult::kWrongOrder, 1);
  for (int order : {-1, 11, 32, 1000, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(pool().Free(block, order), MEMTUNED_OUT_OF_RANGE) << order;
    EXPECT_EQ(pool().Allocate(order), nullptr) << order;
  }
  EXPECT_EQ(server_.Failures(FailureReason::kInvalidOrder), 6u);
  EXPECT_EQ(pool().Free(block, 3), MEMTUNED_OK);
}

TEST_F(FreeTest, ForeignBlocks) {
  void* block = pool().Allocate(0);
  const uint64_t offset = pool().ToOffset(block);
  held_ = 1;
  auto other = Pool::Attach(server_.path());
  ASSERT_TRUE(other);

  ExpectRefused(other->Free(other->FromOffset(offset), 0), MEMTUNED_FOREIGN,
                FreeResult::kForeign, 0);
  ExpectRefused(other->Offer(offset, 0), MEMTUNED_FOREIGN, FreeResult::kForeign,
                1);
  ExpectRefused(other->SetLabel(other->FromOffset(offset), 0, 1),
                MEMTUNED_FOREIGN, FreeResult::kForeign, 2);
  // Adopting what nobody offered.
  ExpectRefused(other->Adopt(offset, 0), MEMTUNED_NOT_ALLOCATED,
                FreeResult::kNotAllocated, 0);
  EXPECT_EQ(pool().Free(block, 0), MEMTUNED_OK);
}

TEST_F(FreeTest, OffersOfOthersAndOfNobody) {
  void* block = pool().Allocate(2);
  const uint64_t offset = pool().ToOffset(block);
  held_ = 4;
  auto other = Pool::Attach(server_.path());
  ASSERT_TRUE(other);
  ASSERT_EQ(pool().Offer(offset, 2, pool().process_id()), MEMTUNED_OK);

  ExpectRefused(other->Adopt(offset, 2), MEMTUNED_FOREIGN, FreeResult::kForeign,
                0);
  ASSERT_EQ(pool().Revoke(offset, 2), MEMTUNED_OK);
  ASSERT_EQ(pool().Offer(offset, 2), MEMTUNED_OK);
  ExpectRefused(other->Adopt(offset, 1), MEMTUNED_WRONG_ORDER,
                FreeResult::kWrongOrder, 0);
  ExpectRefused(other->Adopt(offset + 1, 2), MEMTUNED_OUT_OF_RANGE,
                FreeResult::kOutOfRange, 0);
  ExpectRefused(other->Adopt(MEMTUNED_NO_OFFSET, 2), MEMTUNED_OUT_OF_RANGE,
                FreeResult::kOutOfRange, 1);
  ASSERT_EQ(other->Adopt(offset, 2), MEMTUNED_OK);
  ExpectRefused(pool().Revoke(offset, 2), MEMTUNED_FOREIGN,
                FreeResult::kForeign, 1);
  EXPECT_EQ(other->Free(other->FromOffset(offset), 2), MEMTUNED_OK);
}

TEST_F(FreeTest, BulkSkipsWhatIsRefused) {
  std::vector<void*> blocks(200);
  ASSERT_EQ(pool().AllocateBulk(0, blocks), 200u);
  ASSERT_EQ(pool().Free(blocks[7], 0), MEMTUNED_OK);
  void* stray = &held_;
  blocks.insert(blocks.begin() + 100, stray);

  EXPECT_EQ(pool().FreeBulk(0, blocks), 199u);

  EXPECT_EQ(server_.AllocatedPages(), 0u);
  EXPECT_EQ(server_.Refused(FreeResult::kNotAllocated), 1u);
  EXPECT_EQ(server_.Refused(FreeResult::kOutOfRange), 1u);
}

TEST_F(FreeTest, RunsOutCleanlyAndRecovers) {
  std::vector<void*> blocks;
  for (void* b = pool().Allocate(8); b != nullptr; b = pool().Allocate(8)) {
    blocks.push_back(b);
  }

  EXPECT_GT(blocks.size(), 30u);
  EXPECT_LT(blocks.size(), 65u);
  EXPECT_EQ(server_.Failures(FailureReason::kNoMemory), 1u);
  std::vector<void*> more(100, nullptr);
  EXPECT_EQ(pool().AllocateBulk(8, more), 0u);
  EXPECT_EQ(pool().FreeBulk(8, blocks), blocks.size());
  EXPECT_NE(pool().Allocate(8), nullptr);
}

TEST_F(FreeTest, NullPoolsAreRefused) {
  void* block = &held_;
  EXPECT_EQ(memtuned_allocate(nullptr, 0), nullptr);
  EXPECT_EQ(memtuned_free(nullptr, block, 0), MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_allocate_bulk(nullptr, 0, &block, 1), 0u);
  EXPECT_EQ(memtuned_allocate_bulk(pool().handle(), 0, nullptr, 1), 0u);
  EXPECT_EQ(memtuned_free_bulk(nullptr, 0, &block, 1), 0u);
  EXPECT_EQ(memtuned_offer(nullptr, 0, 0, 0), MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_revoke(nullptr, 0, 0), MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_adopt(nullptr, 0, 0), MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_free_adopted(nullptr, 0, 0), MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_set_label(nullptr, block, 0, 0),
            MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_set_memory_policy(nullptr, MEMTUNED_POLICY_LOCAL, nullptr,
                                       0, nullptr),
            MEMTUNED_INVALID_ARGUMENT);
  EXPECT_EQ(memtuned_to_offset(nullptr, block), MEMTUNED_NO_OFFSET);
  EXPECT_EQ(memtuned_to_offset(pool().handle(), block), MEMTUNED_NO_OFFSET);
  EXPECT_EQ(memtuned_from_offset(nullptr, 0), nullptr);
  EXPECT_EQ(memtuned_from_offset(pool().handle(), pool().bytes()), nullptr);
  EXPECT_EQ(memtuned_is_attached(nullptr), 0);
}

TEST_F(FreeTest, MemoryPoliciesOutOfRangeAreNamed) {
  memtuned_error error;
  EXPECT_EQ(memtuned_set_memory_policy(pool().handle(), 4, nullptr, 0, &error),
            MEMTUNED_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, testing::HasSubstr("policy is 4; allowed 0"));
  EXPECT_EQ(
      memtuned_set_memory_policy(pool().handle(), -1, nullptr, 0, nullptr),
      MEMTUNED_INVALID_ARGUMENT);
  const int absent = 3;
  EXPECT_EQ(memtuned_set_memory_policy(pool().handle(), MEMTUNED_POLICY_BIND,
                                       &absent, 1, &error),
            MEMTUNED_INVALID_ARGUMENT);
  EXPECT_FALSE(pool().SetMemoryPolicy(Pool::MemoryPolicy::kPreferred).ok());
  EXPECT_TRUE(pool().SetMemoryPolicy(Pool::MemoryPolicy::kLocal).ok());
  EXPECT_NE(pool().Allocate(0), nullptr);
}

TEST_F(FreeTest, EveryStatusHasWords) {
  for (int i = MEMTUNED_OK; i <= MEMTUNED_NO_RESOURCES; ++i) {
    EXPECT_STRNE(memtuned_strerror(i), "unknown status");
  }
  EXPECT_STREQ(memtuned_strerror(99), "unknown status");
}

}  // namespace
}  // namespace memtuned::test
