// SPDX-License-Identifier: Apache-2.0
// Splits names at '/' and reads the pairs after the subject.
#include "daemon/rpc/names.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/topology.h"
#include "daemon/rpc/errors.h"

namespace memtuned {
namespace {

constexpr size_t kMaxNameBytes = 256;

const char* AcceptedForms(NameDepth depth) {
  switch (depth) {
    case NameDepth::kSubject:
      return "host, pools/NAME";
    case NameDepth::kNode:
      return "host, pools/NAME, either with /nodes/N";
    case NameDepth::kZone:
      return "host, pools/NAME, either with /nodes/N or /nodes/N/zones/ZONE";
    case NameDepth::kTunable:
      return "host/tunables/TUNABLE, pools/NAME/tunables/TUNABLE";
  }
  return "";
}

// Reads what follows the subject; false when it is not of an accepted form.
bool ReadRest(const std::vector<std::string>& parts, size_t at, NameDepth depth,
              ResourceName& name) {
  const size_t left = parts.size() - at;
  if (depth == NameDepth::kTunable) {
    if (left != 2 || parts[at] != "tunables") return false;
    name.tunable = parts[at + 1];
    return !name.tunable.empty();
  }
  if (left == 0) return true;
  if (depth == NameDepth::kSubject || left < 2 || parts[at] != "nodes") {
    return false;
  }
  int node = -1;
  if (!absl::SimpleAtoi(parts[at + 1], &node) || node < 0 ||
      node > kMaxNodeNumber || absl::StrCat(node) != parts[at + 1]) {
    return false;
  }
  name.node = node;
  if (left == 2) return true;
  if (depth != NameDepth::kZone || left != 4 || parts[at + 2] != "zones") {
    return false;
  }
  name.zone = parts[at + 3];
  return !name.zone.empty();
}

}  // namespace

absl::StatusOr<ResourceName> ParseName(const std::string& text,
                                       const std::string& field,
                                       NameDepth depth) {
  if (text.empty()) {
    return BadField(field,
                    absl::StrCat("is empty; required: ", AcceptedForms(depth)));
  }
  const absl::Status bad =
      BadField(field, absl::StrCat("is ", Quoted(text),
                                   "; allowed: ", AcceptedForms(depth),
                                   "; node numbers 0 to ", kMaxNodeNumber));
  if (text.size() > kMaxNameBytes) return bad;
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  ResourceName name;
  size_t at = 0;
  if (parts[0] == "host") {
    name.subject = "host";
    at = 1;
  } else if (parts[0] == "pools" && parts.size() >= 2 && !parts[1].empty()) {
    name.subject = absl::StrCat("pools/", parts[1]);
    at = 2;
  } else {
    return bad;
  }
  if (!ReadRest(parts, at, depth, name)) return bad;
  return name;
}

std::optional<ProcessId> ParseProcessId(const std::string& text) {
  constexpr uint32_t kMaxSlot = (1u << 10) - 1;
  constexpr uint32_t kMaxGeneration = (1u << 22) - 1;
  const std::vector<std::string> parts = absl::StrSplit(text, '-');
  ProcessId id;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &id.slot) ||
      !absl::SimpleAtoi(parts[1], &id.generation) || id.Text() != text ||
      id.slot > kMaxSlot || id.generation > kMaxGeneration) {
    return std::nullopt;
  }
  return id;
}

std::string NodeName(const std::string& subject, int node) {
  return absl::StrCat(subject, "/nodes/", node);
}

std::string ZoneName(const std::string& subject, int node,
                     const std::string& zone) {
  return absl::StrCat(subject, "/nodes/", node, "/zones/", zone);
}

}  // namespace memtuned
