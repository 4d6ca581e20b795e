// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/lock_report.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/slot_table.h"

namespace memtuned::torture {
namespace {

std::string DescribeOwner(const Segment& segment, ThreadOwner owner) {
  const Mapping& m = segment.mapping();
  const uint32_t number = ThreadSlotOf(owner);
  if (number >= m.nr_threads) return absl::StrCat("owner ", owner);
  const ThreadSlot& thread = m.threads[number];
  std::string text = absl::StrCat("thread slot ", number);
  if (LoadRelaxed(thread.owner) != owner) return text + " (left since)";
  const uint32_t tid = LoadRelaxed(thread.tid);
  const ProcessSlot* process =
      FindProcessSlot(segment, LoadRelaxed(thread.process));
  const uint32_t pid = process == nullptr ? 0 : LoadRelaxed(process->pid);
  const std::string task = absl::StrCat("/proc/", pid, "/task/", tid);
  absl::StrAppend(
      &text, ", tid ", tid, " of pid ", pid,
      pid == 0 ? " (the daemon, or nobody attached)"
               : (access(task.c_str(), F_OK) == 0 ? " (alive)" : " (dead)"));
  return text;
}

}  // namespace

std::string DescribeHeldLocks(const Segment& segment) {
  const Mapping& m = segment.mapping();
  std::string text;
  const auto add = [&](const std::string& what, ThreadOwner owner) {
    if (owner == 0) return;
    absl::StrAppend(&text, text.empty() ? "" : "; ", what, " is held by ",
                    DescribeOwner(segment, owner));
  };
  add("the tuning lock", segment.header().tuning_lock.HolderNow());
  for (uint32_t z = 0; z < m.nr_zones; ++z) {
    add(absl::StrCat("the lock of zone ", z), m.zones[z].lock.HolderNow());
    for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
      add(absl::StrCat("the guard of zone ", z, " cpu ", cpu),
          m.PagesetOf(z, cpu)->guard.HolderNow());
    }
  }
  return text.empty() ? "no lock is held" : text;
}

}  // namespace memtuned::torture
