// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/graveyard.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/env.h"
#include "core/mm/slots.h"
#include "tests/torture/durations.h"

namespace memtuned::torture {
namespace {

constexpr uint64_t kReapPatience = 10 * kSecond;

}  // namespace

bool HasProcessSlot(const Segment& segment, pid_t pid) {
  const Mapping& m = segment.mapping();
  for (uint32_t i = 0; i < m.nr_processes; ++i) {
    const ProcessSlot& slot = m.processes[i];
    if (LoadRelaxed(slot.state) != static_cast<uint32_t>(SlotState::kFree) &&
        LoadRelaxed(slot.pid) == static_cast<uint32_t>(pid)) {
      return true;
    }
  }
  return false;
}

void Graveyard::Bury(Child child) {
  const pid_t pid = child.pid();
  dead_.push_back(
      {std::move(child), pid, HasProcessSlot(segment_, pid), env::NowNs()});
}

bool Graveyard::IsGone(Dead& dead) {
  if (dead.child.alive()) {
    if (!dead.child.TryWait()) return false;
    dead.ended_ns = env::NowNs();
    death_times_.Add(dead.ended_ns - dead.killed_ns);
  }
  const uint64_t since = env::NowNs() - dead.ended_ns;
  if (!HasProcessSlot(segment_, dead.pid)) {
    if (dead.had_slot) reap_times_.Add(since);
    return true;
  }
  if (since < kReapPatience) return false;
  board_.Report(Fault::kReap,
                absl::StrCat("process ", dead.pid, " ended ", since / kSecond,
                             " s ago and still has its slot"));
  return true;
}

void Graveyard::Look() {
  std::erase_if(dead_, [this](Dead& dead) { return IsGone(dead); });
}

void Graveyard::AddTo(std::vector<pollfd>& polled) const {
  for (const Dead& dead : dead_) {
    if (dead.child.alive()) polled.push_back({dead.child.pidfd(), POLLIN, 0});
  }
}

bool Graveyard::waits_for_daemon() const {
  return std::any_of(dead_.begin(), dead_.end(),
                     [](const Dead& dead) { return !dead.child.alive(); });
}

}  // namespace memtuned::torture
