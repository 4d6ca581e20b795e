// SPDX-License-Identifier: Apache-2.0
// Killed processes until the daemon has given back what they held.
#ifndef MEMTUNED_TESTS_TORTURE_GRAVEYARD_H_
#define MEMTUNED_TESTS_TORTURE_GRAVEYARD_H_

#include <poll.h>

#include <cstdint>
#include <vector>

#include "core/segment.h"
#include "tests/torture/board.h"
#include "tests/torture/child.h"
#include "tests/torture/samples.h"

namespace memtuned::torture {

// Whether the pool has a slot of this process.
bool HasProcessSlot(const Segment& segment, pid_t pid);

class Graveyard {
 public:
  Graveyard(const Segment& segment, Board& board)
      : segment_(segment), board_(board) {}

  // Takes a process that was just killed.
  void Bury(Child child);
  // Looks who has ended, and whose slot is free by now.
  void Look();
  // Those that have not ended yet.
  void AddTo(std::vector<pollfd>& polled) const;
  // Whether a slot may become free any moment: there is no event for that.
  bool waits_for_daemon() const;
  bool empty() const { return dead_.empty(); }

  // From a process's end, as its pidfd has it, to its slot being free.
  const Samples& reap_times() const { return reap_times_; }
  // From a kill to the process's end.
  const Samples& death_times() const { return death_times_; }

 private:
  struct Dead {
    Child child;
    pid_t pid;
    bool had_slot;  // when it was killed
    uint64_t killed_ns;
    uint64_t ended_ns = 0;
  };

  // Returns: whether there is nothing more to wait for.
  bool IsGone(Dead& dead);

  const Segment& segment_;
  Board& board_;
  std::vector<Dead> dead_;
  Samples reap_times_, death_times_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_GRAVEYARD_H_
