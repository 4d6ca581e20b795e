// SPDX-License-Identifier: Apache-2.0
#include "core/lock_holders.h"

#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

class HolderList {
 public:
  explicit HolderList(const Mapping& m) : m_(m) {}

  // `where` is called for a lock that is held.
  template <typename Where>
  void Add(LockKind lock, ThreadOwner owner, const Where& where) {
    if (owner == 0 || owner == kCreatorOwner || OwnerDied(m_, owner)) return;
    const ProcessOwner process = ProcessOf(m_, owner);
    if (process == 0 || process == kDaemonProcess) return;
    const uint32_t slot = ThreadSlotOf(owner);
    holders_.push_back(
        {lock, where(), owner, process,
         slot < m_.nr_threads ? LoadRelaxed(m_.threads[slot].tid) : 0});
  }
  std::vector<LockHolder> Take() { return std::move(holders_); }

 private:
  const Mapping& m_;
  std::vector<LockHolder> holders_;
};

void AddZone(const Mapping& m, uint32_t number, HolderList& list) {
  const ZoneShared& z = m.zones[number];
  const ZoneInfo& info = m.zone_info[number];
  const auto zone = [&] {
    return absl::StrCat("nodes/", info.node, "/zones/",
                        ZoneKindName(info.kind));
  };
  list.Add(LockKind::kZone, z.lock.HolderNow(), zone);
  for (const ChunkStack& stack : z.depot) {
    list.Add(LockKind::kDepot, stack.lock.HolderNow(), zone);
  }
  for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
    if ((LoadRelaxed(z.used_cpus[cpu / 64]) >> (cpu % 64) & 1) == 0) continue;
    list.Add(LockKind::kPageset, m.PagesetOf(number, cpu)->guard.HolderNow(),
             [&] { return absl::StrCat(zone(), "/pagesets/", cpu); });
  }
}

}  // namespace

std::vector<LockHolder> ReadLockHolders(const Segment& segment) {
  const Mapping& m = segment.mapping();
  HolderList list(m);
  const auto pool = [] { return std::string(); };
  list.Add(LockKind::kTuning, segment.header().tuning_lock.HolderNow(), pool);
  for (int i = 0; i < kNumEmptyStacks; ++i) {
    list.Add(LockKind::kDepot, m.empty_chunks[i].lock.HolderNow(), pool);
  }
  for (uint32_t i = 0; i < m.nr_zones; ++i) AddZone(m, i, list);
  return list.Take();
}

}  // namespace memtuned
