// SPDX-License-Identifier: Apache-2.0
// The order in which a node's zonelist tries nodes.
#include "core/mm/zonelist.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace memtuned {
namespace {

using Orders = std::vector<std::vector<int>>;

TEST(ComputeNodeOrdersTest, StartsWithTheNodeItself) {
  const ZonelistNode nodes[] = {{0, true, true}, {1, true, true}};

  EXPECT_EQ(ComputeNodeOrders(nodes, {{10, 20}, {20, 10}}),
            (Orders{{0, 1}, {1, 0}}));
}

TEST(ComputeNodeOrdersTest, GoesByDistance) {
  const ZonelistNode nodes[] = {
      {0, true, true}, {1, true, true}, {2, true, true}};

  EXPECT_EQ(
      ComputeNodeOrders(nodes, {{10, 31, 21}, {31, 10, 21}, {21, 21, 10}})[0],
      (std::vector<int>{0, 2, 1}));
}

TEST(ComputeNodeOrdersTest, SpreadsTiesOverTheBuilders) {
  const std::vector<ZonelistNode> nodes(4, ZonelistNode{0, true, true});
  std::vector<ZonelistNode> numbered = nodes;
  for (int i = 0; i < 4; ++i) numbered[static_cast<size_t>(i)].os_index = i;
  std::vector<std::vector<int>> distances(4, std::vector<int>(4, 20));
  for (size_t i = 0; i < 4; ++i) distances[i][i] = 10;

  // Lower numbers pay one unit of distance, a first node of a group one load:
  // each takes the next one up, then wraps.
  EXPECT_EQ(ComputeNodeOrders(numbered, distances),
            (Orders{{0, 1, 2, 3}, {1, 2, 3, 0}, {2, 3, 0, 1}, {3, 0, 1, 2}}));
}

TEST(ComputeNodeOrdersTest, PrefersANodeWithoutCpusAtTheSameDistance) {
  const ZonelistNode nodes[] = {
      {0, true, true}, {1, true, true}, {2, true, false}};
  std::vector<std::vector<int>> distances(3, std::vector<int>(3, 20));
  for (size_t i = 0; i < 3; ++i) distances[i][i] = 10;

  EXPECT_EQ(ComputeNodeOrders(nodes, distances)[0],
            (std::vector<int>{0, 2, 1}));
}

TEST(ComputeNodeOrdersTest, LeavesNodesWithoutMemoryOut) {
  const ZonelistNode nodes[] = {
      {0, false, true}, {5, true, true}, {9, true, true}};
  std::vector<std::vector<int>> distances = {
      {10, 40, 20}, {40, 10, 20}, {20, 20, 10}};

  EXPECT_EQ(ComputeNodeOrders(nodes, distances),
            (Orders{{2, 1}, {1, 2}, {2, 1}}));
}

TEST(ComputeNodeOrdersTest, ListsEachNodeOnceOnALargeMachine) {
  constexpr int kNodes = 64;
  std::vector<ZonelistNode> nodes;
  std::vector<std::vector<int>> distances;
  for (int i = 0; i < kNodes; ++i) {
    nodes.push_back({i * 16, true, i % 3 != 0});
    distances.emplace_back();
    for (int j = 0; j < kNodes; ++j) {
      distances.back().push_back(i == j ? 10 : 10 + (i ^ j) % 4 * 10 + 10);
    }
  }

  for (std::vector<int> order : ComputeNodeOrders(nodes, distances)) {
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), size_t{kNodes});
    for (int i = 0; i < kNodes; ++i) {
      ASSERT_EQ(order[static_cast<size_t>(i)], i);
    }
  }
}

}  // namespace
}  // namespace memtuned
