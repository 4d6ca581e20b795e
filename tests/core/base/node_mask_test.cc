// SPDX-License-Identifier: Apache-2.0
// The fixed mask of node numbers, against a std::set.
#include "core/base/node_mask.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace memtuned {
namespace {

TEST(NodeMaskTest, IsEmptyAtFirst) {
  const NodeMask mask;

  EXPECT_FALSE(mask.Any());
  EXPECT_EQ(mask.First(), -1);
  EXPECT_EQ(mask.Count(), 0);
}

TEST(NodeMaskTest, HoldsTheFirstAndTheLastNumber) {
  NodeMask mask = NodeMask::Of(0);
  mask.Set(1023);

  EXPECT_EQ(mask.First(), 0);
  EXPECT_EQ(mask.Next(0), 1023);
  EXPECT_EQ(mask.Next(1023), -1);
}

TEST(NodeMaskTest, IgnoresNumbersOutOfRange) {
  NodeMask mask;
  for (int nid : {-1, 1024, 1 << 30, -(1 << 30)}) {
    mask.Set(nid);
    EXPECT_FALSE(mask.Test(nid));
    mask.Clear(nid);
  }

  EXPECT_FALSE(mask.Any());
  EXPECT_EQ(NodeMask::All().Next(5000), -1);
  EXPECT_EQ(NodeMask::All().Next(-5000), 0);
}

TEST(NodeMaskTest, AgreesWithASet) {
  std::mt19937 random(7);
  NodeMask mask;
  std::set<int> set;
  for (int step = 0; step < 5000; ++step) {
    const int nid = static_cast<int>(random() % NodeMask::kBits);
    if (random() % 3 == 0) {
      mask.Clear(nid);
      set.erase(nid);
    } else {
      mask.Set(nid);
      set.insert(nid);
    }
  }

  std::set<int> walked;
  for (int n = mask.First(); n >= 0; n = mask.Next(n)) walked.insert(n);
  EXPECT_EQ(walked, set);
  EXPECT_EQ(mask.Count(), static_cast<int>(set.size()));
  for (int n = 0; n < NodeMask::kBits; ++n) {
    EXPECT_EQ(mask.Test(n), set.count(n) == 1) << n;
  }
}

TEST(NodeMaskTest, CombinesMasks) {
  const NodeMask a = NodeMask::Of(3) | NodeMask::Of(700);
  const NodeMask b = NodeMask::Of(700) | NodeMask::Of(9);

  EXPECT_EQ(a & b, NodeMask::Of(700));
  EXPECT_TRUE(a.Intersects(b));
  EXPECT_FALSE(NodeMask::Of(3).Intersects(b));
  EXPECT_TRUE(a.Contains(NodeMask::Of(3)));
  EXPECT_FALSE(a.Contains(b));
  EXPECT_EQ(NodeMask(a.words()), a);
}

TEST(NodeMaskTest, IsEmptyAgainAfterReset) {
  NodeMask mask = NodeMask::All();
  mask.Reset();

  EXPECT_EQ(mask, NodeMask());
}

}  // namespace
}  // namespace memtuned
