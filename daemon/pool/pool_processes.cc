// SPDX-License-Identifier: Apache-2.0
// What is asked of, and set for, single processes.
#include "absl/strings/str_cat.h"
#include "core/base/cpu_mask.h"
#include "core/process_accounts.h"
#include "core/process_limit.h"
#include "core/process_mems.h"
#include "core/slot_table.h"
#include "daemon/pool/pool_subject.h"

namespace memtuned {
namespace {

ProcessOwner OwnerOf(const ProcessId& process) {
  return MakeProcessOwner(process.slot, process.generation);
}

const TunableDef& LimitDef() { return GetTunable(TunableId::kProcessMaxBytes); }

// The process's own: automatic when it has none.
TunableValue OwnLimit(const ProcessSlot& slot) {
  if (!HasOwnLimit(slot)) return AutoValue{};
  const auto pages = static_cast<uint32_t>(LoadRelaxed(slot.limit_override));
  return static_cast<int64_t>(pages * kPageSizeBytes);
}

absl::StatusOr<TunableValue> CheckLimit(const TunableValue& value) {
  if (std::holds_alternative<AutoValue>(value)) return value;
  return CheckTunable(LimitDef(), value);
}

std::string AttachedText(const Segment& segment) {
  std::string text;
  for (const ProcessSnapshot& process : ReadProcesses(segment)) {
    const ProcessId id{process.slot, process.generation};
    absl::StrAppend(&text, text.empty() ? "; there are " : ", ", id.Text());
    if (text.size() > 200) return text + ", ...";
  }
  return text.empty() ? "; there is none" : text;
}

absl::StatusOr<ProcessSlot*> FindProcess(const Segment& segment,
                                         const std::string& pool,
                                         const ProcessId& process) {
  ProcessSlot* slot = FindProcessSlot(segment, OwnerOf(process));
  if (slot != nullptr) return slot;
  return absl::NotFoundError(absl::StrCat(
      pool, " has no process ", process.Text(), AttachedText(segment)));
}

std::vector<int> NumbersOf(const NodeMask& mask) {
  std::vector<int> numbers;
  for (int n = mask.First(); n >= 0; n = mask.Next(n)) numbers.push_back(n);
  return numbers;
}

absl::StatusOr<NodeMask> MaskOf(const Segment& segment,
                                const std::optional<std::vector<int>>& nodes) {
  if (!nodes) return NodeMask::All();
  const NodeMask with_memory = NodesWithMemory(segment);
  NodeMask mask;
  for (const int node : *nodes) {
    if (!with_memory.Test(node)) {
      return absl::InvalidArgumentError(
          absl::StrCat("nodes: ", node, " has no memory of this pool; nodes ",
                       FormatCpuList(NumbersOf(with_memory)), " have"));
    }
    mask.Set(node);
  }
  if (mask.Any()) return mask;
  return absl::InvalidArgumentError(
      "nodes: none is given; a process needs one, or all of them");
}

// "0,2-3"; automatic: all.
TunableValue NodesValue(const NodeMask& nodes) {
  if (nodes == NodeMask::All()) return AutoValue{};
  return FormatCpuList(NumbersOf(nodes));
}

}  // namespace

absl::StatusOr<ChangeResult> PoolSubject::SetProcessLimit(
    const ProcessId& process, const TunableValue& wanted,
    const ChangeContext& context) {
  const auto value = CheckLimit(wanted);
  if (!value.ok()) return value.status();
  MutexLock lock(mutex_);
  if (absl::Status s = CheckEtag(context.etag); !s.ok()) return s;
  const auto found = FindProcess(*segment_, name_, process);
  if (!found.ok()) return found.status();
  ProcessSlot* const slot = *found;
  ValueChange change{absl::StrCat("processes/", process.Text()),
                     LimitDef().name, OwnLimit(*slot), *value, *value};
  if (!context.validate_only) {
    if (!LockTuning(*segment_, thread_.owner, RenewedPatience())) {
      return TuningBusy();
    }
    std::optional<uint64_t> pages;
    if (const auto* bytes = std::get_if<int64_t>(&*value)) {
      pages = static_cast<uint64_t>(*bytes) / kPageSizeBytes;
    }
    SetOwnLimit(*segment_, *slot, OwnerOf(process), pages);
    Bump(segment_->header().generation);
    segment_->header().tuning_lock.Unlock();
    change.after = OwnLimit(*slot);
  }
  return ResultLocked({std::move(change)}, {});
}

absl::StatusOr<ChangeResult> PoolSubject::SetMemsAllowed(
    const ProcessId& process, const std::optional<std::vector<int>>& nodes,
    const ChangeContext& context) {
  const auto mask = MaskOf(*segment_, nodes);
  if (!mask.ok()) return mask.status();
  MutexLock lock(mutex_);
  if (absl::Status s = CheckEtag(context.etag); !s.ok()) return s;
  const auto found = FindProcess(*segment_, name_, process);
  if (!found.ok()) return found.status();
  ProcessSlot& slot = **found;
  Segment& segment = *segment_;
  if (!LockTuning(segment, thread_.owner, RenewedPatience())) {
    return TuningBusy();
  }
  ValueChange change{absl::StrCat("processes/", process.Text()), "mems_allowed",
                     NodesValue(CpusetOf(slot)), NodesValue(*mask),
                     NodesValue(*mask)};
  if (!context.validate_only) {
    SetCpusetLocked(segment, slot, OwnerOf(process), *mask);
    Bump(segment.header().generation);
    change.after = NodesValue(CpusetOf(slot));
  }
  segment.header().tuning_lock.Unlock();
  return ResultLocked({std::move(change)}, {});
}

std::vector<NodeHoldings> PoolSubject::Holdings(const ProcessId& process) {
  MutexLock lock(holdings_mutex_);
  return ReadHoldings(*segment_, OwnerOf(process));
}

}  // namespace memtuned
