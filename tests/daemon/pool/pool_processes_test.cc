// SPDX-License-Identifier: Apache-2.0
// Limits and holdings of single processes, through the subject.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/pool/pool_subject.h"
#include "memtuned/memtuned.h"
#include "tests/daemon/pool/pool_test_util.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

class PoolProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = InitialisedPool(dir_, &store_);
    ASSERT_NE(pool_, nullptr);
    attached_ = Attach();
    const ProcessSnapshot process = pool_->TakeSnapshot(false)->processes.at(0);
    id_ = {process.slot, process.generation};
  }
  void TearDown() override { memtuned_detach(attached_); }

  memtuned_pool* Attach() {
    memtuned_pool* pool = nullptr;
    memtuned_error error;
    EXPECT_EQ(memtuned_attach((dir_.path() + "/test.sock").c_str(), nullptr,
                              &pool, &error),
              MEMTUNED_OK)
        << error.message;
    return pool;
  }
  static int Fill(memtuned_pool* pool, int most = 1000) {
    int blocks = 0;
    while (blocks < most && memtuned_allocate(pool, 0) != nullptr) ++blocks;
    return blocks;
  }
  // Pages of one node.
  uint64_t HeldOf(int node) {
    for (const NodeHoldings& holdings : pool_->Holdings(id_)) {
      if (holdings.node == node) return holdings.pages;
    }
    return 0;
  }
  ProcessSnapshot Process(size_t nth = 0) {
    return pool_->TakeSnapshot(false)->processes.at(nth);
  }

  TempDir dir_;
  FdStore store_;
  std::unique_ptr<PoolSubject> pool_;
  memtuned_pool* attached_ = nullptr;
  ProcessId id_;
};

TEST_F(PoolProcessesTest, AProcesssLimitIsInForceAtOnce) {
  const SubjectVersion before = pool_->Version();

  const auto result =
      pool_->SetProcessLimit(id_, int64_t{10 * 4096 + 1}, ChangeContext{});

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->generation, before.generation + 1);
  EXPECT_NE(result->etag, before.etag);
  ASSERT_EQ(result->values.size(), 1u);
  EXPECT_EQ(result->values[0].scope, "processes/" + id_.Text());
  EXPECT_EQ(result->values[0].tunable, "process.max_bytes");
  EXPECT_EQ(result->values[0].before, TunableValue(AutoValue{}));
  EXPECT_EQ(result->values[0].after, TunableValue(int64_t{10 * 4096}));
  EXPECT_EQ(Fill(attached_), 10);
  EXPECT_EQ(Process().limit_pages, 10u);
  EXPECT_TRUE(Process().own_limit);
  EXPECT_EQ(pool_->TakeSnapshot(false)->allocation_failures["process_limit"],
            1u);
}

TEST_F(PoolProcessesTest, NodesAreInForceAtOnce) {
  ASSERT_EQ(Fill(attached_, 10), 10);

  const auto result =
      pool_->SetMemsAllowed(id_, std::vector<int>{1}, ChangeContext{});

  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->values.size(), 1u);
  EXPECT_EQ(result->values[0].before, TunableValue(AutoValue{}));
  EXPECT_EQ(result->values[0].after, TunableValue(std::string("1")));
  EXPECT_EQ(Process().mems_allowed, std::vector<int>{1});
  const uint64_t before = HeldOf(1);
  EXPECT_EQ(Fill(attached_, 100), 100);
  EXPECT_EQ(HeldOf(1), before + 100);
  ChangeContext plan;
  plan.validate_only = true;
  ASSERT_TRUE(pool_->SetMemsAllowed(id_, std::nullopt, plan).ok());
  EXPECT_EQ(Process().mems_allowed, std::vector<int>{1});
  ASSERT_TRUE(pool_->SetMemsAllowed(id_, std::nullopt, ChangeContext{}).ok());
  EXPECT_EQ(Process().mems_allowed, (std::vector<int>{0, 1}));
}

TEST_F(PoolProcessesTest, SaysWhichNodesThereAre) {
  const auto far =
      pool_->SetMemsAllowed(id_, std::vector<int>{0, 7}, ChangeContext{});
  const auto none =
      pool_->SetMemsAllowed(id_, std::vector<int>{}, ChangeContext{});
  const auto gone = pool_->SetMemsAllowed({5, 9}, std::nullopt, {});

  EXPECT_EQ(far.status().message(),
            "nodes: 7 has no memory of this pool; nodes 0-1 have");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(gone.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Process().mems_allowed, (std::vector<int>{0, 1}));
}

TEST_F(PoolProcessesTest, APlanChangesNothing) {
  ChangeContext plan;
  plan.validate_only = true;

  const auto result = pool_->SetProcessLimit(id_, int64_t{4096}, plan);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->values[0].after, TunableValue(int64_t{4096}));
  EXPECT_EQ(Fill(attached_, 100), 100);
  EXPECT_FALSE(Process().own_limit);
}

TEST_F(PoolProcessesTest, ThePoolsTunableLimitsWhoHasNoLimitOfItsOwn) {
  memtuned_pool* other = Attach();
  const ProcessSnapshot second = Process(1);
  ASSERT_TRUE(pool_
                  ->SetProcessLimit({second.slot, second.generation},
                                    int64_t{0}, ChangeContext{})
                  .ok());

  const auto set = pool_->Apply({{"process.max_bytes", int64_t{20 * 4096}}},
                                ChangeContext{});

  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(Fill(attached_), 20);
  EXPECT_EQ(Fill(other, 100), 100);
  memtuned_pool* later = Attach();
  EXPECT_EQ(Fill(later), 20);
  ASSERT_TRUE(
      pool_->Apply({{"process.max_bytes", int64_t{0}}}, ChangeContext{}).ok());
  EXPECT_EQ(Fill(attached_, 100), 100);
  memtuned_detach(other);
  memtuned_detach(later);
}

TEST_F(PoolProcessesTest, SaysWhichProcessesThereAre) {
  const auto result =
      pool_->SetProcessLimit({5, 9}, int64_t{4096}, ChangeContext{});

  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("has no process 5-9; there are " + id_.Text()));
}

TEST_F(PoolProcessesTest, RefusesALimitOutOfRangeAndAStaleEtag) {
  EXPECT_THAT(
      std::string(
          pool_->SetProcessLimit(id_, int64_t{1}, {}).status().message()),
      HasSubstr("process.max_bytes is 1; allowed 0 or 4096 to"));
  ChangeContext stale;
  stale.etag = "1-x";
  EXPECT_EQ(pool_->SetProcessLimit(id_, int64_t{4096}, stale).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Fill(attached_, 100), 100);
}

TEST_F(PoolProcessesTest, HoldingsAreByNode) {
  const int far = 1;
  ASSERT_EQ(memtuned_set_memory_policy(attached_, MEMTUNED_POLICY_BIND, &far, 1,
                                       nullptr),
            MEMTUNED_OK);
  for (int i = 0; i < 5; ++i) {
    ASSERT_NE(memtuned_allocate(attached_, 4), nullptr);
  }

  const std::vector<NodeHoldings> nodes = pool_->Holdings(id_);

  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].pages, 0u);
  EXPECT_EQ(nodes[1].node, 1);
  EXPECT_EQ(nodes[1].pages, 80u);
  EXPECT_EQ(nodes[1].blocks[4], 5u);
}

}  // namespace
}  // namespace memtuned
