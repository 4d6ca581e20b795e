// SPDX-License-Identifier: Apache-2.0
// The workloads on DPDK's mempool with a cache of 512 objects a thread, as
// one would use it for packets. Built only where libdpdk is installed; exit
// code 77 where it does not initialise.
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <array>
#include <span>

#include "tests/bench/workload.h"

namespace memtuned::bench {
namespace {

struct Mempool {
  __attribute__((noinline)) void* Allocate(int) {
    void* block = nullptr;
    if (rte_mempool_get(pool, &block) != 0) Die("the mempool is empty");
    return block;
  }
  __attribute__((noinline)) void Free(void* block, int) {
    rte_mempool_put(pool, block);
  }
  void AllocateBulk(int, std::span<void*> blocks) {
    const auto count = static_cast<unsigned>(blocks.size());
    if (rte_mempool_get_bulk(pool, blocks.data(), count) != 0) {
      Die("the mempool is empty");
    }
  }
  void FreeBulk(int, std::span<void*> blocks) {
    rte_mempool_put_bulk(pool, blocks.data(),
                         static_cast<unsigned>(blocks.size()));
  }
  uint64_t Send(void* block, int) { return reinterpret_cast<uintptr_t>(block); }
  void FreeSent(uint64_t ticket, int order) {
    Free(reinterpret_cast<void*>(ticket), order);
  }

  rte_mempool* pool;
};

rte_mempool* CreatePool(int order) {
  // No --in-memory: EAL refuses it beside --no-huge.
  std::array<std::string, 11> words = {
      "bench",    "--no-huge", "--no-pci",      "-m",          "640",
      "-l",       "0",         "--log-level=1", "--no-shconf", "--no-telemetry",
      "--no-hpet"};
  std::array<char*, words.size()> argv;
  for (size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    Skip(std::string("DPDK: ") + rte_strerror(rte_errno));
  }
  const unsigned blocks = order == 0 ? 32767 : 12000;
  rte_mempool* pool =
      rte_mempool_create("bench", blocks, 4096u << order, 512, 0, nullptr,
                         nullptr, nullptr, nullptr, SOCKET_ID_ANY, 0);
  if (pool == nullptr) Skip(std::string("DPDK: ") + rte_strerror(rte_errno));
  return pool;
}

}  // namespace

int Main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv);
  if (arguments.run.processes) Die("only threads");
  UsableCpus();  // before DPDK pins this thread
  Meeting& meeting = NewMeeting();
  Mempool allocator{CreatePool(arguments.run.order)};
  RunWorkers(
      arguments.run, [] {},
      [&](int number) {
        // Only registered threads have a cache.
        if (rte_thread_register() != 0) Skip("DPDK: no thread slot");
        Work(allocator, arguments, number, meeting);
        rte_thread_unregister();
      });
  PrintResult(arguments.run, meeting, "dpdk-mempool");
  return 0;
}

}  // namespace memtuned::bench

int main(int argc, char** argv) { return memtuned::bench::Main(argc, argv); }
