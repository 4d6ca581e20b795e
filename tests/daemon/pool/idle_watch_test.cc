// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/idle_watch.h"

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/slot_table.h"
#include "daemon/pool/pool_subject.h"
#include "tests/daemon/pool/pool_test_util.h"
#include "tests/support/test_segment.h"

namespace memtuned {
namespace {

// A thread frees pages of the other node, then its CPU does nothing: the node
// must not report low memory while those pages lie there.
TEST(IdleWatchTest, TheOtherNodesPagesAreBackInSeconds) {
  TempDir dir;
  FdStore store;
  const PinnedToOneCpu pinned;
  auto pool = PoolSubject::Create(SmallPool(dir, 1u << 30), TwoNodes(), &store);
  ASSERT_TRUE(pool.ok()) << pool.status();
  Segment& segment = (*pool)->segment();
  ASSERT_TRUE(Eventually([&] { return segment.Initialised(); }));
  const Mapping& m = segment.mapping();
  const CpuEntry& here = m.cpu_table[env::CurrentCpu()];
  const uint32_t away = 1 - LoadRelaxed(here.zone);
  PagesetShared& pageset = *m.PagesetOf(away, LoadRelaxed(here.cpu));
  const auto owner = TakeProcessSlot(segment, {});
  ASSERT_TRUE(owner.ok());
  Allocator allocator(segment, *owner);
  NodeMask node;
  node.Set(static_cast<int>(segment.zone(away).node()));
  ASSERT_TRUE(allocator.SetMemoryPolicy(MemoryPolicy::kBind, node).ok());
  std::vector<Pfn> held;
  for (int i = 0; i < 50; ++i) held.push_back(allocator.Allocate(0));
  for (Pfn pfn : held) ASSERT_EQ(allocator.Free(pfn, 0), FreeResult::kFreed);
  ASSERT_GT(LoadRelaxed(pageset.pages), 0u);

  // Three quiet seconds after the one in which it was used.
  EXPECT_TRUE(Eventually([&] { return LoadRelaxed(pageset.pages) == 0; }));
}

}  // namespace
}  // namespace memtuned
