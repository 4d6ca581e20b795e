// SPDX-License-Identifier: Apache-2.0
// Loads a topology with hwloc and copies what it says into a RawMachine.
// The only file that includes <hwloc.h>.
#include "daemon/host/topology_probe.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/host/isolated_call.h"
#include "daemon/host/raw_machine_codec.h"
#include "daemon/host/sysfs_cpus.h"
#include "daemon/host/topology_assembly.h"
#include "daemon/host/topology_input.h"

namespace memtuned {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const {
    hwloc_topology_destroy(topology);
  }
};
using TopologyHandle =
    std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDeleter>;

// A libhwloc that needs more is taken to hang.
constexpr std::chrono::milliseconds kLoadDeadline(60000);

// In the child only. hwloc tells on stderr, if asked, what it dislikes. Its own
// XML parser, not libxml2's plugin, so that the same files load everywhere.
void SetHwlocEnvironment(const TopologyInput& input) {
  setenv("HWLOC_HIDE_ERRORS", "0", 1);
  setenv("HWLOC_XML_VERBOSE", "1", 1);
  setenv("HWLOC_SYNTHETIC_VERBOSE", "1", 1);
  setenv("HWLOC_LIBXML", "0", 1);
  if (input.kind != TopologyInputKind::kFsroot) return;
  setenv("HWLOC_FSROOT", input.argument.c_str(), 1);
  setenv("HWLOC_COMPONENTS", "linux,stop", 1);
}

absl::Status Refused(const std::string& spec, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("topology ", spec.substr(0, 120), ": ", why));
}

// Refuses what can be refused with a reason before hwloc sees it.
// Returns: the text of an XML file, "" for the other kinds.
absl::StatusOr<std::string> CheckInput(const TopologyInput& input) {
  absl::Status status;
  if (input.kind == TopologyInputKind::kXml) {
    return ReadTopologyXml(input.argument);
  }
  if (input.kind == TopologyInputKind::kSynthetic) {
    status = CheckSynthetic(input.argument).status();
  } else if (input.kind == TopologyInputKind::kFsroot) {
    status = CheckFsroot(input.argument);
  }
  if (!status.ok()) return status;
  return "";
}

// hwloc drops CPUs whose number is given twice, without a word.
absl::Status CheckCpuCount(const TopologyInput& input,
                           const RawMachine& machine) {
  if (input.kind != TopologyInputKind::kSynthetic) return absl::OkStatus();
  absl::StatusOr<int> wanted = CheckSynthetic(input.argument);
  if (!wanted.ok()) return wanted.status();
  const int found = static_cast<int>(machine.online_cpus.size());
  if (found == *wanted) return absl::OkStatus();
  return Refused(machine.description,
                 absl::StrCat("asks for ", *wanted, " CPUs with ", found,
                              " different numbers"));
}

absl::StatusOr<TopologyHandle> LoadHwloc(const std::string& spec,
                                         const TopologyInput& input,
                                         const std::string& xml) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return absl::InternalError("hwloc_topology_init failed");
  }
  TopologyHandle topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                    HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  int failed = 0;
  if (input.kind == TopologyInputKind::kSynthetic) {
    failed = hwloc_topology_set_synthetic(raw, input.argument.c_str());
  } else if (input.kind == TopologyInputKind::kXml) {
    failed = hwloc_topology_set_xmlbuffer(raw, xml.c_str(),
                                          static_cast<int>(xml.size()) + 1);
  }
  if (failed != 0 || hwloc_topology_load(raw) != 0) {
    return Refused(spec, absl::StrCat("libhwloc cannot load it (",
                                      std::strerror(errno), ")"));
  }
  return topology;
}

// Errors: kInvalidArgument for a set without end or with a number above
// kMaxCpuNumber.
absl::StatusOr<std::vector<int>> CpusOf(const std::string& spec,
                                        hwloc_const_bitmap_t set) {
  std::vector<int> cpus;
  if (set == nullptr) return cpus;
  const int last = hwloc_bitmap_last(set);
  if (hwloc_bitmap_weight(set) < 0) {
    return Refused(spec, "a set of CPUs in it has no end");
  }
  if (last > kMaxCpuNumber) {
    return Refused(spec, absl::StrCat("has CPU number ", last,
                                      "; allowed 0 to ", kMaxCpuNumber));
  }
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0;
       cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  return cpus;
}

// A CPU-less node may have no locality of its own: then it is near to what
// its parent holds, unless that is the whole machine, which says nothing.
hwloc_const_bitmap_t LocalityOf(hwloc_obj_t node) {
  hwloc_obj_t at = node;
  while (hwloc_bitmap_iszero(at->cpuset) && at->parent != nullptr) {
    at = at->parent;
  }
  return at->parent == nullptr ? node->cpuset : at->cpuset;
}

bool IsSpecial(hwloc_obj_t node) {
  return node->subtype != nullptr && node->subtype[0] != '\0' &&
         std::strcmp(node->subtype, "DRAM") != 0;
}

std::vector<hwloc_obj_t> NodesOf(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> nodes;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
                                            node)) != nullptr) {
    nodes.push_back(node);
  }
  return nodes;
}

absl::Status CopyNodes(hwloc_topology_t topology,
                       const std::vector<hwloc_obj_t>& nodes,
                       RawMachine* machine) {
  const hwloc_const_bitmap_t allowed =
      hwloc_topology_get_allowed_nodeset(topology);
  for (hwloc_obj_t node : nodes) {
    absl::StatusOr<std::vector<int>> cpus =
        CpusOf(machine->description, LocalityOf(node));
    if (!cpus.ok()) return cpus.status();
    RawNode raw;
    raw.os_index = node->os_index;
    raw.memory_bytes = node->attr->numanode.local_memory;
    raw.local_cpus = *std::move(cpus);
    raw.allowed = hwloc_bitmap_isset(allowed, node->os_index) != 0;
    raw.special = IsSpecial(node);
    machine->nodes.push_back(std::move(raw));
  }
  return absl::OkStatus();
}

absl::Status CopyCpus(hwloc_topology_t topology, RawMachine* machine) {
  const std::string& spec = machine->description;
  absl::StatusOr<std::vector<int>> online =
      CpusOf(spec, hwloc_topology_get_topology_cpuset(topology));
  if (!online.ok()) return online.status();
  absl::StatusOr<std::vector<int>> allowed =
      CpusOf(spec, hwloc_topology_get_allowed_cpuset(topology));
  if (!allowed.ok()) return allowed.status();
  absl::StatusOr<std::vector<int>> complete =
      CpusOf(spec, hwloc_topology_get_complete_cpuset(topology));
  if (!complete.ok()) return complete.status();
  machine->online_cpus = *std::move(online);
  machine->allowed_cpus = *std::move(allowed);
  machine->complete_cpus = *std::move(complete);
  return absl::OkStatus();
}

// For CPUs in no node: the nodes with memory under the lowest ancestor that
// has any.
void CopyTree(hwloc_topology_t topology, const std::vector<hwloc_obj_t>& nodes,
              RawMachine* machine) {
  for (int cpu : machine->online_cpus) {
    bool local = false;
    for (const hwloc_obj_t node : nodes) {
      local = local ||
              hwloc_bitmap_isset(node->cpuset, static_cast<unsigned>(cpu)) != 0;
    }
    if (local) continue;
    hwloc_obj_t at =
        hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(cpu));
    std::vector<int64_t> nearest;
    for (; at != nullptr && nearest.empty(); at = at->parent) {
      for (const hwloc_obj_t node : nodes) {
        if (node->attr->numanode.local_memory > 0 && at->nodeset != nullptr &&
            hwloc_bitmap_isset(at->nodeset, node->os_index)) {
          nearest.push_back(node->os_index);
        }
      }
    }
    machine->nearest_in_tree[cpu] = std::move(nearest);
  }
}

// Of several matrices the kernel's own: by hwloc's name for it, else the one
// whose local distances are 10, else the first of latencies between nodes.
int MatrixRank(hwloc_topology_t topology, hwloc_distances_s* matrix) {
  if (matrix->kind & HWLOC_DISTANCES_KIND_HETEROGENEOUS_TYPES) return 0;
  if (!(matrix->kind & HWLOC_DISTANCES_KIND_MEANS_LATENCY)) return 0;
  const char* name = hwloc_distances_get_name(topology, matrix);
  if (name != nullptr && std::strcmp(name, "NUMALatency") == 0) return 3;
  return matrix->nbobjs > 0 && matrix->values[0] == 10 ? 2 : 1;
}

void CopyMatrix(const hwloc_distances_s& matrix,
                const std::vector<hwloc_obj_t>& nodes, RawMachine* machine) {
  machine->distances.assign(nodes.size(),
                            std::vector<uint64_t>(nodes.size(), 0));
  std::vector<std::optional<size_t>> position(matrix.nbobjs);
  for (size_t i = 0; i < matrix.nbobjs; ++i) {
    for (size_t j = 0; j < nodes.size(); ++j) {
      if (matrix.objs[i] == nodes[j]) position[i] = j;
    }
  }
  for (size_t i = 0; i < matrix.nbobjs; ++i) {
    for (size_t j = 0; j < matrix.nbobjs; ++j) {
      if (!position[i] || !position[j]) continue;
      machine->distances[*position[i]][*position[j]] =
          matrix.values[i * matrix.nbobjs + j];
    }
  }
}

void CopyDistances(hwloc_topology_t topology,
                   const std::vector<hwloc_obj_t>& nodes, RawMachine* machine) {
  unsigned count = 0;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, nullptr,
                                  0, 0) != 0 ||
      count == 0) {
    return;
  }
  std::vector<hwloc_distances_s*> matrices(count);
  unsigned got = count;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &got,
                                  matrices.data(), 0, 0) != 0) {
    return;
  }
  matrices.resize(std::min(got, count));
  int best_rank = 0;
  for (hwloc_distances_s* matrix : matrices) {
    const int rank = MatrixRank(topology, matrix);
    if (rank > best_rank) {
      best_rank = rank;
      CopyMatrix(*matrix, nodes, machine);
    }
    hwloc_distances_release(topology, matrix);
  }
}

void CopySystem(hwloc_topology_t topology, RawMachine* machine) {
  const char* system =
      hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "OSName");
  if (system != nullptr && std::strcmp(system, "Linux") != 0) {
    machine->warnings.push_back(
        absl::StrCat("this machine runs ", system,
                     ", not Linux: it has no zones to compare with"));
  }
  if (machine->source == TopologySource::kLive &&
      !hwloc_topology_is_thissystem(topology)) {
    machine->warnings.push_back(
        "a HWLOC_ variable of the environment replaces the live machine by "
        "another description");
  }
}

TopologySource SourceOf(TopologyInputKind kind) {
  if (kind == TopologyInputKind::kLive) return TopologySource::kLive;
  if (kind == TopologyInputKind::kSynthetic) return TopologySource::kSynthetic;
  return TopologySource::kXml;
}

// Runs in the child.
absl::StatusOr<RawMachine> ReadMachine(const std::string& spec,
                                       const TopologyInput& input,
                                       const std::string& xml) {
  SetHwlocEnvironment(input);
  absl::StatusOr<TopologyHandle> loaded = LoadHwloc(spec, input, xml);
  if (!loaded.ok()) return loaded.status();
  const hwloc_topology_t topology = loaded->get();
  RawMachine machine;
  machine.description = spec;
  machine.source = SourceOf(input.kind);
  const std::vector<hwloc_obj_t> nodes = NodesOf(topology);
  absl::Status status = CopyCpus(topology, &machine);
  if (status.ok()) status = CopyNodes(topology, nodes, &machine);
  if (!status.ok()) return status;
  CopyTree(topology, nodes, &machine);
  CopyDistances(topology, nodes, &machine);
  CopySystem(topology, &machine);
  return machine;
}

// hwloc's messages on one line, without its frames of asterisks.
std::string OneLine(const std::string& diagnostics) {
  constexpr size_t kMaxShown = 400;
  std::string line;
  for (absl::string_view part : absl::StrSplit(diagnostics, '\n')) {
    part = absl::StripAsciiWhitespace(part);
    while (absl::ConsumePrefix(&part, "*")) {
    }
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    absl::StrAppend(&line, line.empty() ? "" : " | ", part);
  }
  for (char& c : line) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  if (line.size() > kMaxShown) line = line.substr(0, kMaxShown) + "...";
  return line;
}

}  // namespace

absl::StatusOr<Topology> ProbeTopology(const std::string& spec,
                                       const ProbeOptions& options) {
  absl::StatusOr<TopologyInput> input = SplitTopologySpec(spec);
  if (!input.ok()) return input.status();
  absl::StatusOr<std::string> xml = CheckInput(*input);
  if (!xml.ok()) return xml.status();
  absl::StatusOr<IsolatedResult> result = CallIsolated(
      [&] { return EncodeRawMachine(ReadMachine(spec, *input, *xml)); },
      kLoadDeadline);
  if (!result.ok()) return result.status();

  const std::string says = OneLine(result->diagnostics);
  const std::string said =
      says.empty() ? "" : absl::StrCat("; hwloc says: ", says);
  if (!result->failure.empty()) {
    return Refused(spec, absl::StrCat("libhwloc ", result->failure,
                                      " while loading it", said));
  }
  absl::StatusOr<RawMachine> machine = DecodeRawMachine(result->output);
  if (!machine.ok()) {
    return absl::Status(
        machine.status().code(),
        absl::StrCat(std::string(machine.status().message()), said));
  }
  if (absl::Status status = CheckCpuCount(*input, *machine); !status.ok()) {
    return status;
  }
  if (!says.empty()) {
    machine->warnings.push_back(absl::StrCat("hwloc says: ", says));
  }
  if (input->kind == TopologyInputKind::kFsroot) {
    machine->sysfs =
        ReadSysfsCpus(input->argument + "/sys", input->argument + "/proc");
  } else if (input->kind == TopologyInputKind::kLive) {
    machine->sysfs = ReadSysfsCpus(options.sys_root, options.proc_root);
  }
  return AssembleTopology(*machine, options);
}

}  // namespace memtuned
