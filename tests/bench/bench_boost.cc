// SPDX-License-Identifier: Apache-2.0
// The workloads on boost::interprocess: the segment manager that
// managed_shared_memory uses (best fit by red-black tree, process-shared
// mutex), over shared anonymous memory, so that no name is left behind and
// pages appear on first touch, as in the pool.
#include <sys/mman.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#include <new>

#include "tests/bench/workload.h"

namespace memtuned::bench {
namespace {

namespace bi = boost::interprocess;
using Manager = bi::basic_managed_external_buffer<
    char, bi::rbtree_best_fit<bi::mutex_family>, bi::iset_index>;

// Forked processes see the buffer at the same address.
struct BoostManager {
  __attribute__((noinline)) void* Allocate(int order) {
    void* block = manager->allocate(size_t{4096} << order, std::nothrow);
    if (__builtin_expect(block == nullptr, 0)) Die("the segment is full");
    return block;
  }
  __attribute__((noinline)) void Free(void* block, int) {
    manager->deallocate(block);
  }
  uint64_t Send(void* block, int) { return reinterpret_cast<uintptr_t>(block); }
  void FreeSent(uint64_t ticket, int order) {
    Free(reinterpret_cast<void*>(ticket), order);
  }

  Manager* manager;
};

}  // namespace

int Main(int argc, char** argv) {
  constexpr size_t kBytes = size_t{4} << 30;
  const Arguments arguments = ParseArguments(argc, argv);
  Meeting& meeting = NewMeeting();
  void* buffer = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (buffer == MAP_FAILED) Die("no address space");
  Manager manager(bi::create_only, buffer, kBytes);
  RunWorkers(
      arguments.run, [] {},
      [&](int number) {
        BoostManager allocator{&manager};
        Work(allocator, arguments, number, meeting);
      });
  PrintResult(arguments.run, meeting, "boost-interprocess");
  return 0;
}

}  // namespace memtuned::bench

int main(int argc, char** argv) { return memtuned::bench::Main(argc, argv); }
