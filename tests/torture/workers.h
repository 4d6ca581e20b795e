// SPDX-License-Identifier: Apache-2.0
// The processes that use the pool, as their controller sees them.
#ifndef MEMTUNED_TESTS_TORTURE_WORKERS_H_
#define MEMTUNED_TESTS_TORTURE_WORKERS_H_

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/segment.h"
#include "tests/torture/board.h"
#include "tests/torture/child.h"
#include "tests/torture/options.h"

namespace memtuned::torture {

// A slot each, refilled at once when its worker is killed.
class Workers {
 public:
  Workers(const Options& options, Board& board, const Segment& segment,
          std::string socket_path);

  uint32_t size() const { return static_cast<uint32_t>(children_.size()); }
  // Puts a new worker into a slot.
  void Start(uint32_t slot);
  // SIGKILLs a slot's worker and starts the next one.
  // Returns: the killed.
  Child Kill(uint32_t slot);
  void Signal(uint32_t slot, int signal) { children_[slot].Signal(signal); }

  // Whether a worker has been in one call for so long.
  bool InCallFor(uint32_t slot, uint64_t ns) const;
  // Reports those that ended by themselves, those that hang in a call, and
  // that nobody gets anywhere.
  void LookForFaults();
  void AddTo(std::vector<pollfd>& polled) const;

  // Asks all to end and waits for it; reports those that do not.
  void EndAll();

 private:
  std::string Name(uint32_t slot) const;
  void ReportEnd(uint32_t slot, int wait_status);
  // Says who holds which lock, the first time.
  void ReportHang(const std::string& what);

  const Options& options_;
  Board& board_;
  const Segment& segment_;
  const std::string socket_path_;
  std::vector<Child> children_;
  uint32_t next_serial_ = 1;
  uint64_t operations_ = 0;  // when they last grew
  uint64_t progress_ns_;
};

}  // namespace memtuned::torture

#endif  // MEMTUNED_TESTS_TORTURE_WORKERS_H_
