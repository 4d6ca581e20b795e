// SPDX-License-Identifier: Apache-2.0
// Kills the daemon each second and starts it again at once.
#ifndef MEMTUNED_TESTS_TORTURE_DAEMON_KILLER_H_
#define MEMTUNED_TESTS_TORTURE_DAEMON_KILLER_H_

#include <cstdint>

#include "client/load/random.h"
#include "tests/torture/board.h"
#include "tests/torture/daemon_process.h"

namespace memtuned::torture {

// A second after its start the daemon dies if it listens by then; if the
// machine is too busy for that, one time in four while it starts, else soon
// after it began to listen, so that some daemons get to serve.
class DaemonKiller {
 public:
  // `seed`: its draws are its own.
  DaemonKiller(DaemonProcess& daemon, Board& board, uint64_t seed)
      : daemon_(daemon), board_(board), random_(seed, ~uint64_t{0}) {}

  // The daemon was just started.
  void Begin(uint64_t now_ns);
  // Kills it when it is time. Reports one that does not come to listen.
  void Act(uint64_t now_ns);
  uint64_t next_ns() const { return next_ns_; }

  uint64_t kills() const { return kills_; }
  uint64_t kills_at_start() const { return kills_at_start_; }

 private:
  DaemonProcess& daemon_;
  Board& board_;
  load::Random random_;
  uint64_t started_ns_ = 0;
  uint64_t next_ns_ = ~uint64_t{0};  // never
  bool waits_ = false;               // until it listens
  uint64_t kills_ = 0;
  uint64_t kills_at_start_ = 0;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_DAEMON_KILLER_H_
