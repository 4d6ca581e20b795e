// SPDX-License-Identifier: Apache-2.0
// Topologies of tests, from a phrase: "2 nodes, 4 cpus" is two nodes with two
// CPUs each. Refinements by name.
#ifndef MEMTUNED_TESTS_SUPPORT_TOPOLOGY_BUILDER_H_
#define MEMTUNED_TESTS_SUPPORT_TOPOLOGY_BUILDER_H_

#include <string_view>
#include <vector>

#include "core/base/topology.h"

namespace memtuned {

class TopologyBuilder {
 public:
  // "N nodes, M cpus": M CPUs in all, in equal runs over the nodes, distances
  // 10 and 20. Aborts on any other phrase.
  explicit TopologyBuilder(std::string_view phrase);

  // The nodes' operating-system numbers, ascending.
  TopologyBuilder& OsIndexes(const std::vector<int>& numbers);
  // CPU c belongs to node c modulo N, so that few CPUs see every node.
  TopologyBuilder& AlternateCpus();
  // Takes the CPUs of the node at this position away.
  TopologyBuilder& WithoutCpus(int position);
  TopologyBuilder& Distance(int from, int to, int value);

  Topology Build() const;

 private:
  Topology topology_;
};

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_SUPPORT_TOPOLOGY_BUILDER_H_
