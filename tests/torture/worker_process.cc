// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/worker_process.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/attach/pool_state.h"
#include "core/mm/page.h"

namespace memtuned::torture {

std::atomic<bool> g_asked_to_end{false};
void AskToEnd(int) { g_asked_to_end.store(true); }

WorkerProcess::WorkerProcess(const Options& o, Board& b, WorkerId i, Pool& p)
    : options(o),
      board(b),
      id(i),
      owner(uint64_t{i.serial} << 32 | static_cast<uint32_t>(getpid())),
      pool(p),
      held(p.bytes()) {}

std::string WorkerProcess::DescribePage(uint64_t offset) const {
  const Mapping& m = pool.handle()->segment->mapping();
  const uint64_t page = offset / kPageBytes;
  if (page >= m.nr_pages) return "no page of the pool";
  const PageWord word(LoadRelaxed(m.memmap[page].word));
  return absl::StrCat("page ", page, " says kind ",
                      static_cast<int>(word.kind()), ", order ", word.order(),
                      ", generation ", word.generation(), ", ref ", word.ref());
}

void WorkerProcess::Fail(Fault fault, const std::string& text) const {
  board.Report(fault, absl::StrCat("worker ", id.serial, " (slot ", id.slot,
                                   ", pid ", getpid(), ", process ",
                                   pool.process_id(), "): ", text));
  _exit(kFaultExit);
}

}  // namespace memtuned::torture
