// SPDX-License-Identifier: Apache-2.0
// Field by field; what is wrong is collected, so that one reply names it all.
#include "daemon/rpc/tuning_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/names.h"

namespace memtuned {
namespace {

constexpr int kMaxAssignments = 64;
constexpr size_t kMaxReasonBytes = 1024;
constexpr size_t kMaxRequestIdBytes = 128;
constexpr size_t kMaxEtagBytes = 256;

bool HasControlCharacter(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

void CheckText(const std::string& field, const std::string& text, size_t max,
               FieldErrors& errors) {
  if (text.size() > max) {
    errors.Add(field,
               absl::StrCat("has ", text.size(), " bytes; allowed 0 to ", max));
  } else if (HasControlCharacter(text)) {
    errors.Add(field, absl::StrCat("is ", Quoted(text),
                                   "; control characters are not allowed"));
  }
}

const TunableState* Find(const std::vector<TunableState>& states,
                         const std::string& name) {
  for (const TunableState& state : states) {
    if (state.def->name == name) return &state;
  }
  return nullptr;
}

std::string KnownTunables(const std::vector<TunableState>& states) {
  std::vector<std::string> names;
  names.reserve(states.size());
  for (const TunableState& state : states) names.push_back(state.def->name);
  return Listed(names);
}

// Returns: nothing when there is an error, which is added.
std::optional<TunableAssignment> ReadAssignment(
    const v1::Assignment& assignment, const std::string& field,
    const std::vector<TunableState>& states, FieldErrors& errors) {
  const TunableState* state = Find(states, assignment.tunable());
  if (state == nullptr) {
    errors.Add(field + ".tunable",
               absl::StrCat("is ", Quoted(assignment.tunable()),
                            "; this subject has ", KnownTunables(states)));
    return std::nullopt;
  }
  if (!assignment.scope().empty()) {
    errors.Add(
        field + ".scope",
        absl::StrCat("is ", Quoted(assignment.scope()), "; ", state->def->name,
                     " covers the whole subject, leave it empty"));
    return std::nullopt;
  }
  const auto value = FromProto(assignment.value());
  if (!value) {
    errors.Add(field + ".value",
               absl::StrCat("is missing; ", state->def->name, " allows ",
                            AllowedText(*state->def)));
    return std::nullopt;
  }
  const auto checked = CheckTunable(*state->def, *value);
  if (!checked.ok()) {
    errors.Add(field + ".value", std::string(checked.status().message()));
    return std::nullopt;
  }
  return TunableAssignment{state->def->name, *checked};
}

ProcessId ReadProcess(const std::string& text, FieldErrors& errors) {
  const auto process = ParseProcessId(text);
  if (process) return *process;
  errors.Add("process",
             absl::StrCat("is ", Quoted(text),
                          "; allowed SLOT-GENERATION, as 3-17: what follows "
                          "/processes/ in the name of a process"));
  return {};
}

template <class Wanted, class Known>
void CheckMembers(const std::string& field, const Wanted& wanted,
                  const Known& known, FieldErrors& errors) {
  std::set<typename Known::value_type> seen;
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const auto& item : known) names.push_back(absl::StrCat(item));
  for (const auto& item : wanted) {
    if (known.count(item) == 0) {
      errors.Add(field, absl::StrCat("names ", Quoted(absl::StrCat(item)),
                                     "; this subject has ", Listed(names)));
      return;
    }
    if (!seen.insert(item).second) {
      errors.Add(field,
                 absl::StrCat("names ", Quoted(absl::StrCat(item)), " twice"));
      return;
    }
  }
}

std::set<int> KnownCpus(const Topology& topology) {
  std::set<int> cpus(topology.homeless_cpus.begin(),
                     topology.homeless_cpus.end());
  cpus.insert(topology.offline_cpus.begin(), topology.offline_cpus.end());
  for (const TopologyNode& node : topology.nodes) {
    cpus.insert(node.cpus.begin(), node.cpus.end());
  }
  return cpus;
}

std::vector<std::pair<int, std::string>> ZonesOf(const Snapshot& snapshot) {
  std::vector<std::pair<int, std::string>> zones;
  for (const ZoneSnapshot& zone : snapshot.zones) {
    zones.emplace_back(zone.node, zone.zone);
  }
  return zones;
}

bool SelectsAZone(const Scope& scope,
                  const std::vector<std::pair<int, std::string>>& zones) {
  const auto has = [](const auto& list, const auto& item) {
    return list.empty() ||
           std::find(list.begin(), list.end(), item) != list.end();
  };
  return std::any_of(zones.begin(), zones.end(), [&](const auto& zone) {
    return has(scope.nodes, zone.first) && has(scope.zones, zone.second);
  });
}

}  // namespace

void CheckTexts(const std::string& reason, const std::string& request_id,
                const std::string& etag, FieldErrors& errors) {
  CheckText("reason", reason, kMaxReasonBytes, errors);
  CheckText("request_id", request_id, kMaxRequestIdBytes, errors);
  CheckText("etag", etag, kMaxEtagBytes, errors);
}

absl::Status CheckRisks(
    const google::protobuf::RepeatedPtrField<std::string>& accept_risks) {
  if (accept_risks.empty()) return absl::OkStatus();
  return BadField("accept_risks[0]",
                  absl::StrCat("is ", Quoted(accept_risks[0]),
                               "; no plan of this subject names a risk"));
}

absl::StatusOr<std::vector<TunableAssignment>> ReadAssignments(
    const v1::SetTunablesRequest& request, const Subject& subject) {
  const int count = request.assignments_size();
  if (count < 1 || count > kMaxAssignments) {
    return BadField("assignments",
                    absl::StrCat("has ", count, " entries; allowed 1 to ",
                                 kMaxAssignments));
  }
  const std::vector<TunableState> states = subject.Tunables();
  FieldErrors errors;
  std::set<std::string> seen;
  std::vector<TunableAssignment> assignments;
  for (int i = 0; i < count; ++i) {
    const std::string field = absl::StrCat("assignments[", i, "]");
    auto read = ReadAssignment(request.assignments(i), field, states, errors);
    if (!read) continue;
    if (!seen.insert(read->tunable).second) {
      errors.Add(field + ".tunable",
                 absl::StrCat(read->tunable, " is assigned twice"));
    }
    assignments.push_back(*std::move(read));
  }
  if (!errors.empty()) return errors.ToStatus();
  for (const TunableAssignment& assignment : assignments) {
    const TunableState& state = *Find(states, assignment.tunable);
    if (state.writable) continue;
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          assignment.tunable, " is read-only on ",
                          subject.name(), ": ", state.read_only_reason)),
                      "READ_ONLY", {{"tunable", assignment.tunable}});
  }
  return assignments;
}

absl::StatusOr<ProcessLimit> ReadProcessLimit(
    const v1::SetProcessLimitRequest& request) {
  FieldErrors errors;
  ProcessLimit limit;
  limit.process = ReadProcess(request.process(), errors);
  const TunableDef& def = GetTunable(TunableId::kProcessMaxBytes);
  const auto value = FromProto(request.limit());
  if (!value) {
    errors.Add("limit", absl::StrCat("is missing; allowed auto or ",
                                     AllowedText(def), " bytes"));
  } else if (std::holds_alternative<AutoValue>(*value)) {
    limit.value = *value;
  } else if (const auto checked = CheckTunable(def, *value); checked.ok()) {
    limit.value = *checked;
  } else {
    errors.Add("limit", absl::StrCat(std::string(checked.status().message()),
                                     ", or auto"));
  }
  if (!errors.empty()) return errors.ToStatus();
  return limit;
}

absl::StatusOr<ProcessMems> ReadProcessMems(
    const v1::SetMemsAllowedRequest& request) {
  FieldErrors errors;
  ProcessMems mems;
  mems.process = ReadProcess(request.process(), errors);
  if (request.all_nodes() != request.nodes().empty()) {
    errors.Add("nodes", request.all_nodes()
                            ? "must be empty when all_nodes is set"
                            : "is empty; allowed are nodes with memory of the "
                              "pool, or all_nodes");
  }
  if (!errors.empty()) return errors.ToStatus();
  if (!request.all_nodes()) {
    mems.nodes.emplace(request.nodes().begin(), request.nodes().end());
  }
  return mems;
}

absl::StatusOr<Scope> ReadScope(const v1::Scope& scope, bool cpus_allowed,
                                const ServedSubject& served,
                                SteadyTime deadline) {
  if (scope.nodes().empty() && scope.zones().empty() && scope.cpus().empty()) {
    return Scope();
  }
  const auto sample = LatestSample(served, deadline);
  if (!sample.ok()) return sample.status();
  const auto zones = ZonesOf(**sample);
  std::set<int> known_nodes;
  std::set<std::string> known_zones;
  for (const auto& [node, zone] : zones) {
    known_nodes.insert(node);
    known_zones.insert(zone);
  }
  FieldErrors errors;
  CheckMembers("scope.nodes", scope.nodes(), known_nodes, errors);
  CheckMembers("scope.zones", scope.zones(), known_zones, errors);
  if (!cpus_allowed && !scope.cpus().empty()) {
    errors.Add("scope.cpus", "must be empty: limits belong to whole zones");
  } else {
    CheckMembers("scope.cpus", scope.cpus(),
                 KnownCpus(served.subject->topology()), errors);
  }
  if (!errors.empty()) return errors.ToStatus();
  Scope out;
  out.nodes.assign(scope.nodes().begin(), scope.nodes().end());
  out.zones.assign(scope.zones().begin(), scope.zones().end());
  out.cpus.assign(scope.cpus().begin(), scope.cpus().end());
  if (!SelectsAZone(out, zones)) {
    return BadField("scope",
                    "selects no zone: none of these nodes has one "
                    "of these zones");
  }
  return out;
}

absl::Status Explain(const absl::Status& status, const Subject& subject,
                     const LastChange& last) {
  if (HasReason(status)) return status;
  switch (status.code()) {
    case absl::StatusCode::kAborted: {
      const SubjectVersion now = subject.Version();
      std::map<std::string, std::string> metadata = {
          {"etag", now.etag}, {"generation", absl::StrCat(now.generation)}};
      if (last.generation == now.generation && !last.caller.empty()) {
        metadata["changed_by"] = last.caller;
      }
      return WithReason(status, "ETAG_MISMATCH", metadata);
    }
    case absl::StatusCode::kFailedPrecondition:
      return WithReason(status, "READ_ONLY", {{"subject", subject.name()}});
    case absl::StatusCode::kInvalidArgument:
      return WithReason(status, "INVALID_FIELD");
    default:
      return status;
  }
}

}  // namespace memtuned
