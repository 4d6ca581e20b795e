// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/final_check.h"

#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/attach/pool_state.h"
#include "core/mm/slots.h"
#include "core/mm/zone.h"
#include "tests/support/zone_checker.h"

namespace memtuned::torture {
namespace {

constexpr std::chrono::seconds kAlonePatience(10);

class PoolAtRest {
 public:
  PoolAtRest(Pool& pool, Board& board)
      : segment_(*pool.handle()->segment),
        mine_(pool.process_id()),
        board_(board) {}

  // Processes and threads that are still attached, in words.
  std::string Others() const {
    const Mapping& m = segment_.mapping();
    std::string others;
    for (uint32_t i = 0; i < m.nr_processes; ++i) {
      const ProcessSlot& slot = m.processes[i];
      const uint32_t state = LoadRelaxed(slot.state);
      if (state == static_cast<uint32_t>(SlotState::kFree) ||
          LoadRelaxed(slot.owner) == mine_) {
        continue;
      }
      absl::StrAppend(&others, " process slot ", i, " (pid ",
                      LoadRelaxed(slot.pid), ", state ", state, ")");
    }
    for (uint32_t i = 0; i < m.nr_threads; ++i) {
      const ThreadSlot& slot = m.threads[i];
      const uint32_t process = LoadRelaxed(slot.process);
      if (LoadRelaxed(slot.owner) == 0 || process == kDaemonProcess ||
          process == mine_) {
        continue;
      }
      absl::StrAppend(&others, " thread slot ", i, " (tid ",
                      LoadRelaxed(slot.tid), ")");
    }
    return others;
  }

  void WaitUntilAlone() const {
    const auto give_up = std::chrono::steady_clock::now() + kAlonePatience;
    while (!Others().empty() && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (const std::string others = Others(); !others.empty()) {
      Lost(absl::StrCat("nobody lives, but there are", others));
    }
  }

  void Check() const {
    ZoneChecker checker(segment_);
    if (const std::string problem = checker.Check(); !problem.empty()) {
      Lost(problem);
    }
    const PoolPages& pages = checker.pages();
    if (pages.allocated + pages.offered + pages.cached != 0) {
      Lost(absl::StrCat("pages are not free: ", pages.allocated, " allocated, ",
                        pages.offered, " offered, ", pages.cached, " cached"));
    }
    for (Zone& zone : segment_.zones()) CheckZone(zone);
  }

 private:
  void CheckZone(const Zone& zone) const {
    const ZoneShared& z = zone.shared();
    const uint64_t managed = LoadRelaxed(z.managed_pages);
    if (managed != z.present_pages || zone.FreePages() != managed) {
      Lost(absl::StrCat("zone ", z.number, " has ", zone.FreePages(),
                        " free pages of ", managed, " managed, ",
                        z.present_pages, " present"));
    }
    // What no largest block fits into is at the end of the zone.
    const uint64_t rest = z.present_pages % (uint64_t{1} << kMaxOrder);
    for (int order = 0; order < kMaxOrder; ++order) {
      const uint64_t expected = rest >> order & 1;
      if (zone.FreeBlocks(order) == expected) continue;
      Lost(absl::StrCat(
          "zone ", z.number, " is not merged: ", zone.FreeBlocks(order),
          " free blocks of order ", order, "; expected ", expected));
    }
  }

  void Lost(const std::string& text) const {
    board_.Report(Fault::kLost, text);
  }

  Segment& segment_;
  const uint32_t mine_;
  Board& board_;
};

}  // namespace

void CheckPoolAtRest(Pool& pool, DaemonProcess& daemon, Board& board) {
  const PoolAtRest rest(pool, board);
  rest.WaitUntilAlone();
  const std::string problem = daemon.Ctl(
      {"--subject", "pools/default", "drain", "--reason", "end of torture"});
  if (!problem.empty()) board.Report(Fault::kLost, problem);
  rest.Check();
}

}  // namespace memtuned::torture
