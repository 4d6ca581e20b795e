// SPDX-License-Identifier: Apache-2.0
// The workloads on whatever malloc is in force: preload a replacement to
// measure it. Prints ns per pair and the file that malloc came from.
#include <dlfcn.h>

#include <cstdlib>

#include "tests/bench/workload.h"

namespace memtuned::bench {
namespace {

struct Malloc {
  __attribute__((noinline)) void* Allocate(int order) {
    void* block = std::malloc(size_t{4096} << order);
    if (__builtin_expect(block == nullptr, 0)) Die("malloc failed");
    return block;
  }
  __attribute__((noinline)) void Free(void* block, int) { std::free(block); }
  uint64_t Send(void* block, int) { return reinterpret_cast<uintptr_t>(block); }
  void FreeSent(uint64_t ticket, int order) {
    Free(reinterpret_cast<void*>(ticket), order);
  }
};

std::string FileOfMalloc() {
  Dl_info info;
  void* symbol = dlsym(RTLD_DEFAULT, "malloc");
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "?";
}

}  // namespace

int Main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv);
  if (arguments.run.processes) Die("malloc's blocks stay in one process");
  Meeting& meeting = NewMeeting();
  RunWorkers(
      arguments.run, [] {},
      [&](int number) {
        Malloc allocator;
        Work(allocator, arguments, number, meeting);
      });
  PrintResult(arguments.run, meeting, FileOfMalloc());
  return 0;
}

}  // namespace memtuned::bench

int main(int argc, char** argv) { return memtuned::bench::Main(argc, argv); }
