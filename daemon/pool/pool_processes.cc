// SPDX-License-Identifier: Apache-2.0
// What is asked of, and set for, single processes.
#include "absl/strings/str_cat.h"
#include "core/process_accounts.h"
#include "core/process_limit.h"
#include "core/slot_table.h"
#include "daemon/pool/pool_subject.h"

namespace memtuned {
namespace {

ProcessOwner OwnerOf(const ProcessId& process) {
  return process.generation << kProcessSlotBits | process.slot;
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

}  // namespace

absl::StatusOr<ChangeResult> PoolSubject::SetProcessLimit(
    const ProcessId& process, const TunableValue& wanted,
    const ChangeContext& context) {
  const auto value = CheckLimit(wanted);
  if (!value.ok()) return value.status();
  MutexLock lock(mutex_);
  if (absl::Status s = CheckEtag(context.etag); !s.ok()) return s;
  const ProcessOwner owner = OwnerOf(process);
  ProcessSlot* slot = FindProcessSlot(*segment_, owner);
  if (slot == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        name_, " has no process ", process.Text(), AttachedText(*segment_)));
  }
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
    SetOwnLimit(*segment_, *slot, owner, pages);
    Bump(segment_->header().generation);
    segment_->header().tuning_lock.Unlock();
    change.after = OwnLimit(*slot);
  }
  return ResultLocked({std::move(change)}, {});
}

std::vector<NodeHoldings> PoolSubject::Holdings(const ProcessId& process) {
  MutexLock lock(holdings_mutex_);
  return ReadHoldings(*segment_, OwnerOf(process));
}

}  // namespace memtuned
