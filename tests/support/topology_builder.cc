// SPDX-License-Identifier: Apache-2.0
#include "tests/support/topology_builder.h"

#include <cstdio>
#include <string>

#include "core/base/check.h"

namespace memtuned {

TopologyBuilder::TopologyBuilder(std::string_view phrase) {
  int nodes = 0;
  int cpus = 0;
  char node_word[8] = "";
  char cpu_word[8] = "";
  const std::string text(phrase);
  CHECK(std::sscanf(text.c_str(), "%d %6[a-z], %d %6[a-z]", &nodes, node_word,
                    &cpus, cpu_word) == 4);
  CHECK_WITH(nodes > 0 && cpus >= nodes, nodes, cpus);
  topology_.source = TopologySource::kSynthetic;
  topology_.description = text;
  topology_.distances.assign(static_cast<size_t>(nodes),
                             std::vector<int>(static_cast<size_t>(nodes), 20));
  for (int n = 0; n < nodes; ++n) {
    TopologyNode node;
    node.os_index = n;
    node.memory_bytes = int64_t{1} << 40;
    for (int c = n * cpus / nodes; c < (n + 1) * cpus / nodes; ++c) {
      node.cpus.push_back(c);
    }
    node.near_cpus = node.cpus;
    topology_.nodes.push_back(node);
    Distance(n, n, 10);
  }
}

TopologyBuilder& TopologyBuilder::OsIndexes(const std::vector<int>& numbers) {
  CHECK(numbers.size() == topology_.nodes.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    topology_.nodes[i].os_index = numbers[i];
  }
  return *this;
}

TopologyBuilder& TopologyBuilder::AlternateCpus() {
  const int end = topology_.CpuNumberEnd();
  for (TopologyNode& node : topology_.nodes) node.cpus.clear();
  for (int c = 0; c < end; ++c) {
    topology_.nodes[static_cast<size_t>(c) % topology_.nodes.size()]
        .cpus.push_back(c);
  }
  for (TopologyNode& node : topology_.nodes) node.near_cpus = node.cpus;
  return *this;
}

TopologyBuilder& TopologyBuilder::WithoutCpus(int position) {
  TopologyNode& node = topology_.nodes[static_cast<size_t>(position)];
  for (int cpu : node.cpus) topology_.offline_cpus.push_back(cpu);
  node.cpus.clear();
  return *this;
}

TopologyBuilder& TopologyBuilder::Distance(int from, int to, int value) {
  topology_.distances[static_cast<size_t>(from)][static_cast<size_t>(to)] =
      value;
  return *this;
}

Topology TopologyBuilder::Build() const { return topology_; }

}  // namespace memtuned
