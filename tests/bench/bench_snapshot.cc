// SPDX-License-Identifier: Apache-2.0
// Issue 2, "scrapes cost allocating threads nothing": allocate and free by
// LIFO on one CPU, with and without a thread that reads a snapshot of the
// pool every 10 ms. Times are the allocating thread's own CPU time, so that
// waiting for a CPU does not count.
// Prints one ABBA pair a line: ns per pair with snapshots, ns without.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "client/attach/include/memtuned/memtuned.h"
#include "core/snapshot.h"
#include "tests/bench/workload.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::bench {
namespace {

// Long enough for three snapshots.
constexpr uint64_t kSampleNs = 30'000'000;

double NsAPair(memtuned_pool* pool) {
  constexpr int kPairsAGlance = 20000;
  uint64_t pairs = 0;
  const uint64_t wall_end = WallNs() + kSampleNs;
  const uint64_t start = ThreadCpuNs();
  while (WallNs() < wall_end) {
    for (int i = 0; i < kPairsAGlance; ++i) {
      void* block = memtuned_allocate(pool, 0);
      Keep(block);
      if (memtuned_free(pool, block, 0) != MEMTUNED_OK) Die("free refused");
    }
    pairs += kPairsAGlance;
  }
  return static_cast<double>(ThreadCpuNs() - start) /
         static_cast<double>(pairs);
}

// Reads snapshots while it lives.
class Reader {
 public:
  explicit Reader(Segment& segment)
      : thread_([this, &segment] {
          if (UsableCpus() > 1) PinToCpu(1);
          while (!stop_.load()) {
            Keep(ReadSnapshot(segment, /*full=*/false).zones.data());
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  ~Reader() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

double NsDuringSnapshots(memtuned_pool* pool, Segment& segment) {
  const Reader reader(segment);
  return NsAPair(pool);
}

}  // namespace

int Main(int argc, char** argv) {
  const int pairs = argc == 2 ? std::atoi(argv[1]) : 0;
  if (pairs < 1 || pairs > 1000) Die("usage: PAIRS, 1 to 1000");
  UsableCpus();
  test::AttachTestServer server;
  memtuned_pool* pool = nullptr;
  memtuned_error error;
  if (memtuned_attach(server.path().c_str(), nullptr, &pool, &error) !=
      MEMTUNED_OK) {
    Die(error.message);
  }
  PinToCpu(0);
  NsAPair(pool);
  for (int i = 0; i < pairs; ++i) {
    const double before = NsAPair(pool);
    const double during = NsDuringSnapshots(pool, server.segment()) +
                          NsDuringSnapshots(pool, server.segment());
    const double after = NsAPair(pool);
    std::printf("%.4f %.4f\n", during / 2, (before + after) / 2);
  }
  memtuned_detach(pool);
  return 0;
}

}  // namespace memtuned::bench

int main(int argc, char** argv) { return memtuned::bench::Main(argc, argv); }
