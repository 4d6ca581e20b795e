// SPDX-License-Identifier: Apache-2.0
// An allocation while the allowed nodes change, in every schedule within a
// bound: it never fails, as both nodes have free pages all the time. Built a
// second time with the retry left out; then a schedule must fail. The masks lie
// in different words, so that a copy that is being overwritten is empty for a
// moment.
#include <gtest/gtest.h>

#include "core/slot_table.h"
#include "tests/core/virtual/virtual_pool.h"

namespace memtuned {
namespace {

class ExploreMemsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!env::VirtualMachine::Supported()) {
      GTEST_SKIP() << "fibers and sanitizers do not mix";
    }
  }

  // A writer moves the process from node 0 to node 1000 and back, twice
  // through each copy.
  static Exploration Flip(const ExplorerOptions& bound) {
    VirtualPool pool({.topology = "2 nodes, 2 cpus",
                      .node_indexes = {0, 1000},
                      .node_pages = {256}});
    MemsAllowed& mems =
        FindProcessSlot(pool.segment(), pool.allocator().owner())->mems;
    const auto write = [&mems](int node) {
      WriteMemsAllowed(mems, NodeMask::Of(node), MemoryPolicy::kLocal,
                       NodeMask(), 0);
    };
    write(0);
    Pfn got;
    const Exploration found = pool.Explore(
        bound,
        {[&] { got = pool.allocator().Allocate(0); },
         [&] {
           for (int node : {1000, 1000, 0}) write(node);
         }},
        [&]() -> std::string { return got.value == kNil ? "failed" : ""; });
    return found;
  }
};

#ifndef MEMTUNED_NO_MEMS_RETRY

TEST_F(ExploreMemsTest, AnAllocationNeverFailsWhileNodesChange) {
  const ExplorerOptions bound{.preemptions = 2};

  const Exploration found = Flip(bound);

  ExpectAllSound("allocate x three changes of nodes", bound, found, 2000);
}

#else

TEST_F(ExploreMemsTest, FailsWithoutTheRetry) {
  const ExplorerOptions bound{.preemptions = 2};

  const Exploration found = Flip(bound);

  ExpectFailure("allocate x three changes of nodes", found);
  EXPECT_EQ(found.failure, "failed");
}

#endif

}  // namespace
}  // namespace memtuned
