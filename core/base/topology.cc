// SPDX-License-Identifier: Apache-2.0
// Questions to a Topology, and the check of its rules.
#include "core/base/topology.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

bool Has(const std::vector<int>& ascending, int value) {
  return std::binary_search(ascending.begin(), ascending.end(), value);
}

// Errors: kInvalidArgument, naming `what`, unless `cpus` is ascending, without
// repeats and within the limits.
absl::Status CheckCpus(const std::vector<int>& cpus, const std::string& what) {
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (cpus[i] < 0 || cpus[i] > kMaxCpuNumber) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": CPU number ", cpus[i], "; allowed 0 to ", kMaxCpuNumber));
    }
    if (i > 0 && cpus[i] <= cpus[i - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": CPU ", cpus[i], " follows CPU ", cpus[i - 1],
                       "; the list must be ascending, each CPU once"));
    }
  }
  return absl::OkStatus();
}

// Adds `cpus` to `seen`. Errors: kInvalidArgument for one already there.
absl::Status Claim(const std::vector<int>& cpus, const std::string& what,
                   std::set<int>* seen) {
  if (absl::Status status = CheckCpus(cpus, what); !status.ok()) return status;
  for (int cpu : cpus) {
    if (!seen->insert(cpu).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": CPU ", cpu, " is in another list too"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const std::vector<TopologyNode>& nodes) {
  if (nodes.empty() || nodes.size() > kMaxNodes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "topology has ", nodes.size(), " nodes; allowed 1 to ", kMaxNodes));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TopologyNode& node = nodes[i];
    const std::string what = absl::StrCat("node ", node.os_index);
    if (node.os_index < 0 || node.os_index > kMaxNodeNumber) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node number ", node.os_index, "; allowed 0 to ", kMaxNodeNumber));
    }
    if (i > 0 && node.os_index <= nodes[i - 1].os_index) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " follows node ", nodes[i - 1].os_index,
                       "; nodes must be ascending, each number once"));
    }
    if (node.memory_bytes < 0) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": memory_bytes is ",
                                                     node.memory_bytes,
                                                     "; must not be negative"));
    }
    if (absl::Status status =
            CheckCpus(node.near_cpus, absl::StrCat(what, " near_cpus"));
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDistances(const Topology& topology) {
  const size_t n = topology.nodes.size();
  if (topology.distances.size() != n) {
    return absl::InvalidArgumentError(absl::StrCat("distances has ",
                                                   topology.distances.size(),
                                                   " rows for ", n, " nodes"));
  }
  for (size_t i = 0; i < n; ++i) {
    const std::vector<int>& row = topology.distances[i];
    const int nid = topology.nodes[i].os_index;
    if (row.size() != n) {
      return absl::InvalidArgumentError(
          absl::StrCat("distances of node ", nid, " has ", row.size(),
                       " entries for ", n, " nodes"));
    }
    for (size_t j = 0; j < n; ++j) {
      if (row[j] <= 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "distance from node ", nid, " to node ", topology.nodes[j].os_index,
            " is ", row[j], "; must be above 0"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int> Topology::OnlineCpus() const {
  std::vector<int> all = homeless_cpus;
  for (const TopologyNode& node : nodes) {
    all.insert(all.end(), node.cpus.begin(), node.cpus.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

int Topology::CpuNumberEnd() const {
  int end = 0;
  const auto raise = [&end](const std::vector<int>& cpus) {
    if (!cpus.empty()) end = std::max(end, cpus.back() + 1);
  };
  for (const TopologyNode& node : nodes) raise(node.cpus);
  raise(homeless_cpus);
  raise(offline_cpus);
  return end;
}

int Topology::HomeNodeOf(int cpu) const {
  int own = -1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (Has(nodes[i].cpus, cpu)) own = static_cast<int>(i);
  }
  if (own >= 0 && nodes[static_cast<size_t>(own)].memory_bytes > 0) return own;

  // Smallest tuple wins; nodes are ascending, so ties keep the lower number.
  using Rank = std::tuple<int, bool, size_t>;
  int best = -1;
  Rank best_rank;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_bytes <= 0) continue;
    const int distance = own < 0 ? 0 : distances[static_cast<size_t>(own)][i];
    const bool near = Has(nodes[i].near_cpus, cpu);
    const Rank rank(distance, !near, near ? nodes[i].near_cpus.size() : 0);
    if (best < 0 || rank < best_rank) {
      best = static_cast<int>(i);
      best_rank = rank;
    }
  }
  return best;
}

int Topology::NodeIndexOf(int os_index) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].os_index == os_index) return static_cast<int>(i);
  }
  return -1;
}

absl::Status Topology::Validate() const {
  if (absl::Status status = CheckNodes(nodes); !status.ok()) return status;
  std::set<int> seen;
  for (const TopologyNode& node : nodes) {
    absl::Status status =
        Claim(node.cpus, absl::StrCat("node ", node.os_index, " cpus"), &seen);
    if (!status.ok()) return status;
  }
  if (absl::Status status = Claim(homeless_cpus, "homeless_cpus", &seen);
      !status.ok()) {
    return status;
  }
  if (seen.empty()) {
    return absl::InvalidArgumentError("topology has no online CPU");
  }
  if (absl::Status status = Claim(offline_cpus, "offline_cpus", &seen);
      !status.ok()) {
    return status;
  }
  return CheckDistances(*this);
}

}  // namespace memtuned
