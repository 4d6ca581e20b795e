// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/method_table.h"

namespace memtuned {
namespace {

constexpr std::string_view kOurPackage = "memtuned.v1.";
constexpr std::string_view kLibrary = "grpc.";

constexpr bool kSubject = true;
constexpr bool kAny = false;
constexpr bool kMutates = true;
constexpr bool kReads = false;

constexpr MethodRule kTable[] = {
    {"TopologyService/ListSubjects", Role::kViewer, kAny, kReads},
    {"TopologyService/GetTopology", Role::kViewer, kSubject, kReads},
    {"StatsService/GetSnapshot", Role::kViewer, kSubject, kReads},
    {"StatsService/ListZones", Role::kViewer, kSubject, kReads},
    {"StatsService/ListPagesets", Role::kViewer, kSubject, kReads},
    {"StatsService/ListProcesses", Role::kViewer, kSubject, kReads},
    {"StatsService/WatchSnapshots", Role::kViewer, kSubject, kReads},
    {"TuningService/ListTunables", Role::kViewer, kSubject, kReads},
    {"TuningService/GetTunable", Role::kViewer, kSubject, kReads},
    {"TuningService/SetTunables", Role::kOperator, kSubject, kMutates},
    {"TuningService/Recalculate", Role::kOperator, kSubject, kMutates},
    {"TuningService/Drain", Role::kOperator, kSubject, kMutates},
    {"TuningService/SetProcessLimit", Role::kOperator, kSubject, kMutates},
    {"TuningService/SetMemsAllowed", Role::kOperator, kSubject, kMutates},
    {"grpc.health.v1.Health/Check", Role::kViewer, kAny, kReads},
    {"grpc.health.v1.Health/Watch", Role::kViewer, kAny, kReads},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     Role::kViewer, kAny, kReads},
};

}  // namespace

bool MethodRule::IsOurs() const {
  return !std::string_view(name).starts_with(kLibrary);
}

std::span<const MethodRule> MethodTable() { return kTable; }

const MethodRule* FindMethod(std::string_view name) {
  for (const MethodRule& rule : kTable) {
    if (name == rule.name) return &rule;
  }
  return nullptr;
}

const MethodRule* FindMethodByPath(std::string_view path) {
  if (!path.starts_with('/')) return nullptr;
  path.remove_prefix(1);
  if (path.starts_with(kLibrary)) return FindMethod(path);
  if (!path.starts_with(kOurPackage)) return nullptr;
  path.remove_prefix(kOurPackage.size());
  const MethodRule* rule = FindMethod(path);
  return rule != nullptr && rule->IsOurs() ? rule : nullptr;
}

}  // namespace memtuned
