// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/sabotage.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "client/attach/pool_state.h"
#include "core/mm/page.h"
#include "tests/torture/call_timer.h"

namespace memtuned::torture {
namespace {

// Writes over the first copy of a stamp in somebody else's block.
void Scribble(WorkerProcess& process, load::Random& random) {
  const Mapping& m = process.pool.handle()->segment->mapping();
  for (int tries = 0; tries < 100000; ++tries) {
    const uint32_t page = random.Between(0, m.nr_pages - 1);
    const PageWord word(LoadRelaxed(m.memmap[page].word));
    if (word.kind() != PageKind::kAllocated ||
        word.ref() == process.pool.process_id()) {
      continue;
    }
    auto* frame = static_cast<char*>(
        process.pool.FromOffset(uint64_t{page} * kPageBytes));
    std::memset(frame + kHolderBytes, 0x66, sizeof(Stamp));
    return;
  }
}

void Dawdle(WorkerProcess& process, std::chrono::milliseconds time) {
  CallTimer timer(process.board, process.line().threads[0], process.id.slot,
                  process.options.max_wait_ns());
  timer.Begin();
  std::this_thread::sleep_for(time);
  timer.End("a call that dawdles on purpose");
}

}  // namespace

Fault FaultOf(Sabotage sabotage) {
  switch (sabotage) {
    case Sabotage::kScribble:
      return Fault::kStamp;
    case Sabotage::kWait:
      return Fault::kWait;
    case Sabotage::kHang:
      return Fault::kHang;
    case Sabotage::kLeak:
    case Sabotage::kNone:
      break;
  }
  return Fault::kLost;
}

void Commit(Sabotage sabotage, WorkerProcess& process, load::Random& random) {
  if (process.id.slot != 0) return;
  const std::chrono::milliseconds too_long(process.options.max_wait_ms * 2);
  switch (sabotage) {
    case Sabotage::kScribble:
      Scribble(process, random);
      break;
    case Sabotage::kWait:
      Dawdle(process, too_long);
      break;
    case Sabotage::kHang:
      Dawdle(process, std::chrono::hours(1));
      break;
    case Sabotage::kLeak:
    case Sabotage::kNone:
      break;
  }
}

}  // namespace memtuned::torture
