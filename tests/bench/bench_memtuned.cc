// SPDX-License-Identifier: Apache-2.0
// The workloads through the public C interface of libmemtuned.so, attached
// over a socket to a pool of 4 GiB that is there in full and whose frames
// nobody touches. `--markers` runs a fixed number of pairs between two writes
// to standard error, for syscalls_test.py.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

#include "client/attach/include/memtuned/memtuned.h"
#include "tests/bench/workload.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::bench {
namespace {

memtuned_pool* Attach(const char* path) {
  memtuned_pool* pool = nullptr;
  memtuned_error error;
  if (memtuned_attach(path, nullptr, &pool, &error) != MEMTUNED_OK) {
    Die(error.message);
  }
  return pool;
}

// Threads of one process hand blocks on as they are.
struct Pool {
  void* Allocate(int order) {
    void* block = memtuned_allocate(pool, order);
    if (__builtin_expect(block == nullptr, 0)) Die("the pool has no memory");
    return block;
  }
  void Free(void* block, int order) {
    if (__builtin_expect(memtuned_free(pool, block, order) != MEMTUNED_OK, 0)) {
      Die("a free was refused");
    }
  }
  void AllocateBulk(int order, std::span<void*> blocks) {
    if (memtuned_allocate_bulk(pool, order, blocks.data(), blocks.size()) !=
        blocks.size()) {
      Die("the pool has no memory");
    }
  }
  void FreeBulk(int order, std::span<void*> blocks) {
    if (memtuned_free_bulk(pool, order, blocks.data(), blocks.size()) !=
        blocks.size()) {
      Die("a free was refused");
    }
  }
  uint64_t Send(void* block, int) { return reinterpret_cast<uintptr_t>(block); }
  void FreeSent(uint64_t ticket, int order) {
    Free(reinterpret_cast<void*>(ticket), order);
  }

  memtuned_pool* pool;
};

// Processes offer and adopt them.
struct PoolBetweenProcesses : Pool {
  uint64_t Send(void* block, int order) {
    const uint64_t offset = memtuned_to_offset(pool, block);
    if (memtuned_offer(pool, offset, order, 0) != MEMTUNED_OK) {
      Die("an offer was refused");
    }
    return offset;
  }
  void FreeSent(uint64_t ticket, int order) {
    const memtuned_status status = memtuned_free_adopted(pool, ticket, order);
    if (status != MEMTUNED_OK) {
      std::fprintf(stderr, "free_adopted: %s\n", memtuned_strerror(status));
      Die("an adoption was refused");
    }
  }
};

test::AttachTestServerOptions PoolOptions() {
  test::AttachTestServerOptions options;
  options.name = "bench";
  options.pages_a_node = uint64_t{4} << 30 >> 12;
  return options;
}

void WorkInOwnProcess(const Arguments& arguments, int number,
                      Meeting& meeting) {
  while (!meeting.opened.load()) usleep(200);
  PoolBetweenProcesses allocator{{Attach(meeting.socket.data())}};
  Work(allocator, arguments, number, meeting);
}

int Measure(const Arguments& arguments) {
  Meeting& meeting = NewMeeting();
  std::optional<test::AttachTestServer> server;
  memtuned_pool* pool = nullptr;
  const auto open = [&] {
    server.emplace(PoolOptions());
    if (!arguments.run.processes) pool = Attach(server->path().c_str());
    server->path().copy(meeting.socket.data(), meeting.socket.size() - 1);
    meeting.opened.store(true);
  };
  RunWorkers(arguments.run, open, [&](int number) {
    if (arguments.run.processes) {
      WorkInOwnProcess(arguments, number, meeting);
    } else {
      Pool allocator{pool};
      Work(allocator, arguments, number, meeting);
    }
  });
  memtuned_detach(pool);
  PrintResult(arguments.run, meeting, "memtuned");
  return 0;
}

void Mark(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) Die("cannot write");
}

int RunBetweenMarkers() {
  constexpr uint64_t kPairs = 1000000;
  const test::AttachTestServer server(PoolOptions());
  Pool allocator{Attach(server.path().c_str())};
  PinToCpu(0);
  for (int order : {0, 3}) {
    const Case run = {Shape::kLifo, 1, order, 1, false};
    std::vector<void*> held(1);
    Pairs(allocator, run, 1000, held);
    Mark("fast path begins\n");
    Pairs(allocator, run, kPairs, held);
    Mark("fast path ends\n");
  }
  memtuned_detach(allocator.pool);
  return 0;
}

}  // namespace

int Main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--markers") == 0) {
    return RunBetweenMarkers();
  }
  return Measure(ParseArguments(argc, argv));
}

}  // namespace memtuned::bench

int main(int argc, char** argv) { return memtuned::bench::Main(argc, argv); }
