// SPDX-License-Identifier: Apache-2.0
// Rules that turn what hwloc and sysfs say of a machine into a Topology.
#include "daemon/host/topology_assembly.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/cpu_mask.h"

namespace memtuned {
namespace {

constexpr int kLocalDistance = 10;   // the kernel's own numbers, also where
constexpr int kRemoteDistance = 20;  // firmware states no distance
constexpr int kFarthestDistance = 255;

bool Has(const std::vector<int>& ascending, int value) {
  return std::binary_search(ascending.begin(), ascending.end(), value);
}

void Insert(int value, std::vector<int>* ascending) {
  const auto at = std::lower_bound(ascending->begin(), ascending->end(), value);
  if (at == ascending->end() || *at != value) ascending->insert(at, value);
}

std::vector<int> Union(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(),
                 std::back_inserter(all));
  return all;
}

std::vector<int> Minus(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                      std::back_inserter(rest));
  return rest;
}

// Nodes sorted by number, each CPU with its owner, distances in kernel units.
class Assembler {
 public:
  Assembler(const RawMachine& machine, const ProbeOptions& options)
      : machine_(machine), options_(options) {}

  absl::StatusOr<Topology> Run() {
    if (absl::Status status = CheckLimits(); !status.ok()) return status;
    topology_.source = machine_.source;
    topology_.description = machine_.description;
    topology_.warnings = machine_.warnings;
    if (machine_.sysfs) {
      for (const std::string& warning : machine_.sysfs->warnings) Warn(warning);
    }
    SortNodes();
    AssignOwners();
    NormaliseDistances();
    KeepNodes();
    PlaceCpus();
    PlaceHomeless();
    ListOffline();
    if (nodes_with_memory_ == 0) AssumeMemory();
    WarnOfOddNodes();
    if (absl::Status status = topology_.Validate(); !status.ok()) {
      return Bad(std::string(status.message()));
    }
    return std::move(topology_);
  }

 private:
  absl::Status Bad(const std::string& why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("topology ", machine_.description, ": ", why));
  }
  void Warn(const std::string& text) { topology_.warnings.push_back(text); }
  static std::string NodeList(const std::vector<int>& nids) {
    return absl::StrCat(nids.size() == 1 ? "node " : "nodes ",
                        FormatCpuList(nids));
  }
  static std::string CpuList(const std::vector<int>& cpus) {
    return absl::StrCat(cpus.size() == 1 ? "CPU " : "CPUs ",
                        FormatCpuList(cpus));
  }

  absl::Status CheckLimits() const;
  void SortNodes();
  bool KernelOwnersUsable();
  void AssignOwners();
  int OwnerByLocality(int cpu) const;
  void NormaliseDistances();
  void KeepNodes();
  void PlaceCpus();
  void PlaceHomeless();
  void ListOffline();
  void AssumeMemory();
  void UseOneNode();
  void WarnOfOddNodes();

  const RawMachine& machine_;
  const ProbeOptions& options_;
  std::vector<size_t> order_;  // of machine_.nodes, by os_index
  std::map<int, int> owner_;   // CPU -> position in order_, -1 for none
  std::vector<std::vector<int>> distances_;  // between positions in order_
  std::vector<size_t> kept_;  // positions in order_, as topology_.nodes
  int nodes_with_memory_ = 0;
  Topology topology_;

  const RawNode& NodeAt(size_t position) const {
    return machine_.nodes[order_[position]];
  }
};

absl::Status Assembler::CheckLimits() const {
  if (options_.assumed_memory_bytes < 1 ||
      options_.assumed_memory_bytes > kMaxNodeMemoryBytes) {
    return Bad(absl::StrCat("assumed_memory_bytes is ",
                            options_.assumed_memory_bytes, "; allowed 1 to ",
                            kMaxNodeMemoryBytes));
  }
  if (machine_.nodes.size() > kMaxNodes) {
    return Bad(absl::StrCat("has ", machine_.nodes.size(), " nodes; at most ",
                            kMaxNodes, " are allowed"));
  }
  std::set<int64_t> seen;
  for (const RawNode& node : machine_.nodes) {
    if (node.os_index < 0 || node.os_index > kMaxNodeNumber) {
      return Bad(absl::StrCat("has node number ", node.os_index,
                              "; allowed 0 to ", kMaxNodeNumber));
    }
    if (!seen.insert(node.os_index).second) {
      return Bad(absl::StrCat("has two nodes with number ", node.os_index));
    }
    if (node.memory_bytes > static_cast<uint64_t>(kMaxNodeMemoryBytes)) {
      return Bad(absl::StrCat("node ", node.os_index, " states ",
                              node.memory_bytes, " bytes of memory; at most ",
                              kMaxNodeMemoryBytes, " are allowed"));
    }
  }
  return absl::OkStatus();
}

void Assembler::SortNodes() {
  for (size_t i = 0; i < machine_.nodes.size(); ++i) order_.push_back(i);
  std::sort(order_.begin(), order_.end(), [this](size_t a, size_t b) {
    return machine_.nodes[a].os_index < machine_.nodes[b].os_index;
  });
}

// The kernel's lists are used whole or not at all: only if they are of the
// same nodes as hwloc's and no CPU is in two.
bool Assembler::KernelOwnersUsable() {
  if (!machine_.sysfs || machine_.sysfs->own_by_node.empty()) return false;
  std::vector<int> hwloc_nodes, kernel_nodes;
  for (size_t i = 0; i < order_.size(); ++i) {
    hwloc_nodes.push_back(static_cast<int>(NodeAt(i).os_index));
  }
  std::set<int> seen;
  bool twice = false;
  for (const auto& [nid, cpus] : machine_.sysfs->own_by_node) {
    kernel_nodes.push_back(nid);
    for (int cpu : cpus) twice = twice || !seen.insert(cpu).second;
  }
  if (hwloc_nodes == kernel_nodes && !twice) return true;
  Warn(absl::StrCat("the kernel lists ", NodeList(kernel_nodes),
                    twice ? ", some with the same CPUs" : "",
                    "; hwloc makes of it ", NodeList(hwloc_nodes),
                    ", and CPUs are placed by that"));
  return false;
}

// For machines whose kernel cannot be asked. Of the nodes that a CPU is local
// to: ordinary memory first, then the most specific, then the lowest number.
int Assembler::OwnerByLocality(int cpu) const {
  int best = -1;
  std::pair<bool, size_t> best_rank;
  for (size_t i = 0; i < order_.size(); ++i) {
    const RawNode& node = NodeAt(i);
    if (!Has(node.local_cpus, cpu)) continue;
    const std::pair<bool, size_t> rank(node.special, node.local_cpus.size());
    if (best < 0 || rank < best_rank) {
      best = static_cast<int>(i);
      best_rank = rank;
    }
  }
  return best;
}

void Assembler::AssignOwners() {
  if (!KernelOwnersUsable()) {
    for (int cpu : machine_.online_cpus) owner_[cpu] = OwnerByLocality(cpu);
    return;
  }
  for (int cpu : machine_.online_cpus) owner_[cpu] = -1;
  int position = 0;
  for (const auto& [nid, cpus] : machine_.sysfs->own_by_node) {
    for (int cpu : cpus) {
      const auto at = owner_.find(cpu);
      if (at != owner_.end()) at->second = position;
    }
    ++position;
  }
}

void Assembler::NormaliseDistances() {
  const size_t n = order_.size();
  distances_.assign(n, std::vector<int>(n, kRemoteDistance));
  bool bad = false, far = false;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n && !machine_.distances.empty(); ++j) {
      const uint64_t local = machine_.distances[order_[i]][order_[i]];
      const uint64_t stated = machine_.distances[order_[i]][order_[j]];
      if (local == 0 || stated == 0) {
        bad = true;
        continue;
      }
      const double units = static_cast<double>(stated) /
                           static_cast<double>(local) * kLocalDistance;
      far = far || units > kFarthestDistance;
      distances_[i][j] = static_cast<int>(
          std::clamp(units + 0.5, 1.0, double{kFarthestDistance}));
    }
    distances_[i][i] = kLocalDistance;
  }
  if (n < 2) return;
  if (machine_.distances.empty() &&
      machine_.source != TopologySource::kSynthetic) {
    Warn("no distances between nodes are stated; taken as 10 and 20");
  }
  if (bad) Warn("some distances between nodes are not stated; taken as 20");
  if (far) Warn("some distances between nodes are above 255; taken as 255");
}

void Assembler::KeepNodes() {
  std::vector<int> left_out;
  for (size_t i = 0; i < order_.size(); ++i) {
    const RawNode& raw = NodeAt(i);
    if (!raw.allowed && !options_.include_disallowed) {
      left_out.push_back(static_cast<int>(raw.os_index));
      continue;
    }
    kept_.push_back(i);
    TopologyNode node;
    node.os_index = static_cast<int>(raw.os_index);
    node.memory_bytes = static_cast<int64_t>(raw.memory_bytes);
    node.near_cpus = raw.local_cpus;
    nodes_with_memory_ += node.memory_bytes > 0 ? 1 : 0;
    topology_.nodes.push_back(std::move(node));
  }
  for (size_t from : kept_) {
    std::vector<int>& row = topology_.distances.emplace_back();
    for (size_t to : kept_) row.push_back(distances_[from][to]);
  }
  if (!left_out.empty()) {
    Warn(absl::StrCat(NodeList(left_out),
                      " left out: disallowed by the machine's cpuset, or "
                      "without memory"));
  }
}

void Assembler::PlaceCpus() {
  for (const auto& [cpu, owner] : owner_) {
    if (!Has(machine_.allowed_cpus, cpu) && !options_.include_disallowed) {
      continue;
    }
    const auto at = owner < 0 ? kept_.end()
                              : std::find(kept_.begin(), kept_.end(),
                                          static_cast<size_t>(owner));
    if (at == kept_.end()) {
      topology_.homeless_cpus.push_back(cpu);
    } else {
      topology_.nodes[static_cast<size_t>(at - kept_.begin())].cpus.push_back(
          cpu);
    }
  }
}

// Lists each homeless CPU with its nearest nodes: by distance from the node it
// would belong to, or by the machine's tree.
void Assembler::PlaceHomeless() {
  for (int cpu : topology_.homeless_cpus) {
    const int owner = owner_[cpu];
    int nearest = 0;
    for (size_t i = 0; owner >= 0 && i < kept_.size(); ++i) {
      if (topology_.nodes[i].memory_bytes <= 0) continue;
      const int distance = distances_[static_cast<size_t>(owner)][kept_[i]];
      if (nearest == 0 || distance < nearest) nearest = distance;
    }
    const auto tree = machine_.nearest_in_tree.find(cpu);
    for (size_t i = 0; i < kept_.size(); ++i) {
      TopologyNode& node = topology_.nodes[i];
      const bool by_distance =
          owner >= 0 && node.memory_bytes > 0 &&
          distances_[static_cast<size_t>(owner)][kept_[i]] == nearest;
      const bool by_tree = tree != machine_.nearest_in_tree.end() &&
                           std::find(tree->second.begin(), tree->second.end(),
                                     node.os_index) != tree->second.end();
      if (by_distance || by_tree) Insert(cpu, &node.near_cpus);
    }
  }
  if (!topology_.homeless_cpus.empty()) {
    Warn(absl::StrCat(CpuList(topology_.homeless_cpus),
                      " of no usable node; served by the nearest node that "
                      "has memory"));
  }
}

void Assembler::ListOffline() {
  std::vector<int> possible =
      Union(machine_.complete_cpus, machine_.online_cpus);
  if (machine_.sysfs) possible = Union(possible, machine_.sysfs->possible);
  topology_.offline_cpus = Minus(possible, topology_.OnlineCpus());
  const std::vector<int> forbidden =
      Minus(machine_.online_cpus, topology_.OnlineCpus());
  if (!forbidden.empty()) {
    Warn(absl::StrCat(CpuList(forbidden),
                      " online but disallowed by the machine's cpuset; "
                      "listed as offline"));
  }
}

// A description asks for its nodes by hand, so they stay as they are; on a
// machine, nodes without any memory are no nodes to rely on.
void Assembler::AssumeMemory() {
  if (machine_.source != TopologySource::kSynthetic) return UseOneNode();
  for (TopologyNode& node : topology_.nodes) {
    node.memory_bytes = options_.assumed_memory_bytes;
  }
  Warn(absl::StrCat("no node states any memory; each is taken to have ",
                    options_.assumed_memory_bytes, " bytes"));
}

void Assembler::UseOneNode() {
  TopologyNode node;
  if (!topology_.nodes.empty()) node.os_index = topology_.nodes[0].os_index;
  node.cpus = topology_.OnlineCpus();
  node.near_cpus = node.cpus;
  const bool known = machine_.sysfs && machine_.sysfs->memory_bytes > 0 &&
                     machine_.sysfs->memory_bytes <= kMaxNodeMemoryBytes;
  node.memory_bytes =
      known ? machine_.sysfs->memory_bytes : options_.assumed_memory_bytes;
  Warn(absl::StrCat(
      topology_.nodes.empty() ? "there is no usable node"
                              : "no usable node states any memory",
      "; one node ", node.os_index, " is taken to have all CPUs and ",
      node.memory_bytes, known ? " bytes (meminfo)" : " bytes (assumed)"));
  topology_.nodes = {std::move(node)};
  topology_.distances = {{kLocalDistance}};
  topology_.homeless_cpus.clear();
}

void Assembler::WarnOfOddNodes() {
  std::vector<int> no_memory, no_cpus;
  for (const TopologyNode& node : topology_.nodes) {
    if (node.memory_bytes == 0) no_memory.push_back(node.os_index);
    if (node.cpus.empty()) no_cpus.push_back(node.os_index);
  }
  if (!no_memory.empty()) {
    Warn(absl::StrCat(NodeList(no_memory),
                      " without memory: no zone; its CPUs are served by the "
                      "nearest node that has memory"));
  }
  if (!no_cpus.empty()) {
    Warn(absl::StrCat(NodeList(no_cpus),
                      " without CPUs: pageset limits divide by all online "
                      "CPUs"));
  }
}

}  // namespace

absl::StatusOr<Topology> AssembleTopology(const RawMachine& machine,
                                          const ProbeOptions& options) {
  return Assembler(machine, options).Run();
}

}  // namespace memtuned
