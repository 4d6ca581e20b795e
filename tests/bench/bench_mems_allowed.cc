// SPDX-License-Identifier: Apache-2.0
// Issue 2, "no full barrier for the mask": asking mems_allowed about a node by
// cookie, against the same bracketed by two full barriers and a comparison.
// Prints one ABBA pair a line: ns by cookie, ns with barriers.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/mm/cpuset.h"
#include "tests/bench/workload.h"

namespace memtuned::bench {
namespace {

constexpr int kReads = 400000;

__attribute__((noinline)) bool AskByCookie(const MemsAllowed& mems,
                                           uint32_t node) {
  const MemsCookie cookie = ReadMemsAllowedBegin(mems);
  return AllowsLocally(mems, cookie, node);
}

__attribute__((noinline)) bool AskBetweenBarriers(const MemsAllowed& mems,
                                                  uint32_t node) {
  for (;;) {
    const MemsCookie cookie = ReadMemsAllowedBegin(mems);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool allowed = AllowsLocally(mems, cookie, node);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!ReadMemsAllowedRetry(mems, cookie)) return allowed;
  }
}

template <typename Ask>
double NsARead(const MemsAllowed& mems, Ask ask) {
  const uint64_t start = ThreadCpuNs();
  for (int i = 0; i < kReads; ++i) Keep(ask(mems, 3u));
  return static_cast<double>(ThreadCpuNs() - start) / kReads;
}

}  // namespace

int Main(int argc, char** argv) {
  const int pairs = argc == 2 ? std::atoi(argv[1]) : 0;
  if (pairs < 1 || pairs > 1000) Die("usage: PAIRS, 1 to 1000");
  const auto mems = std::make_unique<MemsAllowed>();
  NodeMask restricted;
  restricted.Set(0);
  restricted.Set(3);
  WriteMemsAllowed(*mems, restricted, MemoryPolicy::kLocal, NodeMask(), 0);
  PinToCpu(0);
  NsARead(*mems, AskByCookie);
  for (int i = 0; i < pairs; ++i) {
    const double first = NsARead(*mems, AskByCookie);
    const double barriers =
        NsARead(*mems, AskBetweenBarriers) + NsARead(*mems, AskBetweenBarriers);
    const double cookie = first + NsARead(*mems, AskByCookie);
    std::printf("%.4f %.4f\n", cookie / 2, barriers / 2);
  }
  return 0;
}

}  // namespace memtuned::bench

int main(int argc, char** argv) { return memtuned::bench::Main(argc, argv); }
