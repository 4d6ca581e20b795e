// SPDX-License-Identifier: Apache-2.0
// What a --topology value names, checked before hwloc sees it: hwloc reports
// failures without a reason, and its synthetic parser has no limits.
// Floor 2b; knows no hwloc.
#ifndef MEMTUNED_DAEMON_HOST_TOPOLOGY_INPUT_H_
#define MEMTUNED_DAEMON_HOST_TOPOLOGY_INPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memtuned {

enum class TopologyInputKind { kLive, kXml, kSynthetic, kFsroot };

// A --topology value taken apart. `argument` is what follows the colon: a
// file, a description, a directory; empty for live.
struct TopologyInput {
  TopologyInputKind kind = TopologyInputKind::kLive;
  std::string argument;
};

// Splits "live", "xml:FILE", "synthetic:DESC" or "fsroot:DIR".
// Errors: kInvalidArgument naming the value and the four forms.
absl::StatusOr<TopologyInput> SplitTopologySpec(const std::string& spec);

// Largest XML file that is read. The biggest real ones are some 2 MB.
inline constexpr int64_t kMaxTopologyXmlBytes = int64_t{64} << 20;

// Reads a hwloc XML file and refuses, with the reason, what libhwloc 2.x
// cannot load: version 3 files, CRLF line ends, version 1 files of several
// machines under a System object, and anything that is not a hwloc topology.
// Errors: kNotFound, kPermissionDenied, kInvalidArgument; each names the file.
absl::StatusOr<std::string> ReadTopologyXml(const std::string& path);

// Bounds the machine that a synthetic description asks for, before hwloc
// builds it. Attached nodes, "[numa(memory=16GiB)]", count as nodes.
// Returns: the number of CPUs it asks for.
// Errors: kInvalidArgument naming the word that is wrong, or the number of
// nodes or CPUs and its limit. Whether a type exists, hwloc says.
absl::StatusOr<int> CheckSynthetic(const std::string& description);

// kInvalidArgument unless `dir` holds sys/devices/system/cpu.
absl::Status CheckFsroot(const std::string& dir);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_HOST_TOPOLOGY_INPUT_H_
