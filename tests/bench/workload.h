// SPDX-License-Identifier: Apache-2.0
// What every allocator is put through, and how it is timed. An allocator is
// any type with
//   void* Allocate(int order);            never nullptr
//   void Free(void* block, int order);
//   uint64_t Send(void* block, int order);       ticket for another worker
//   void FreeSent(uint64_t ticket, int order);   that worker frees it
// and, if it has them, for many blocks at a time
//   void AllocateBulk(int order, std::span<void*> blocks);
//   void FreeBulk(int order, std::span<void*> blocks);
// Nothing here touches the memory of a block.
#ifndef MEMTUNED_TESTS_BENCH_WORKLOAD_H_
#define MEMTUNED_TESTS_BENCH_WORKLOAD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace memtuned::bench {

enum class Shape { kLifo, kBurst, kBulk, kProducerConsumer };

// One row of the summary, such as "burst512/order0/2threads".
struct Case {
  Shape shape = Shape::kLifo;
  uint32_t burst = 1;  // blocks held at once
  int order = 0;
  int workers = 1;  // 1 or 2
  bool processes = false;
};

struct Arguments {
  Case run;
  double milliseconds = 50;
};
// Reads "CASE MILLISECONDS" from a command line.
// Dies with a message that names the words it knows, for any other.
Arguments ParseArguments(int argc, char** argv);

// Prints why on standard error and ends the program with code 2.
[[noreturn]] void Die(const std::string& why);
// Ends the program with code 77: this machine cannot run that case.
[[noreturn]] void Skip(const std::string& why);

// Pins the calling thread to the n-th CPU this process may use.
void PinToCpu(int n);
int UsableCpus();

uint64_t WallNs();
uint64_t ThreadCpuNs();
double Median(std::vector<double> values);

inline constexpr uint32_t kRingEntries = 256;

// One producer, one consumer. The counts on either side of the line that
// only its own side writes.
struct Ring {
  alignas(64) std::atomic<uint64_t> head{0};
  uint64_t tail_seen = 0;
  alignas(64) std::atomic<uint64_t> tail{0};
  uint64_t head_seen = 0;
  alignas(64) std::array<uint64_t, kRingEntries> tickets;
};

// What the workers of a case share, in memory that forked ones share too.
struct Meeting {
  std::atomic<int> arrived{0};
  std::atomic<int> finished{0};
  std::atomic<bool> opened{false};  // processes: the pool is there
  std::array<char, 256> socket{};
  std::array<double, 2> ns{};  // per pair, by worker
  std::atomic<bool> produced{false};
  Ring ring;
};
Meeting& NewMeeting();

// Runs worker(0), worker(1), ... in threads, or in forked processes of which
// any failure ends this one as well. `open` runs in the parent once the
// workers were forked; threads start after it.
void RunWorkers(const Case& run, const std::function<void()>& open,
                const std::function<void(int)>& worker);

// ns per pair over all workers, as the driver reads it.
void PrintResult(const Case& run, const Meeting& meeting,
                 const std::string& allocator);

inline void Pause() { __builtin_ia32_pause(); }

// Keeps the compiler from leaving out what makes `value`.
template <typename T>
inline void Keep(T value) {
  asm volatile("" ::"r"(value) : "memory");
}

inline void Meet(Meeting& meeting, int workers) {
  meeting.arrived.fetch_add(1);
  while (meeting.arrived.load() < workers) Pause();
}

template <typename A>
void Pairs(A& allocator, const Case& run, uint64_t pairs,
           std::vector<void*>& held) {
  const int order = run.order;
  if (run.burst == 1) {
    for (uint64_t i = 0; i < pairs; ++i) {
      void* block = allocator.Allocate(order);
      Keep(block);
      allocator.Free(block, order);
    }
    return;
  }
  if constexpr (requires { allocator.FreeBulk(order, held); }) {
    for (uint64_t i = 0; run.shape == Shape::kBulk && i < pairs;
         i += run.burst) {
      allocator.AllocateBulk(order, held);
      allocator.FreeBulk(order, held);
    }
    if (run.shape == Shape::kBulk) return;
  }
  for (uint64_t i = 0; i < pairs; i += run.burst) {
    for (void*& block : held) block = allocator.Allocate(order);
    for (void* block : held) allocator.Free(block, order);
  }
}

// Samples of about a millisecond until `milliseconds` are over, at least 3.
// A lone worker is timed by its own CPU time, so that what else runs on the
// machine does not count; several by the clock, as they may wait for each
// other.
template <typename A>
void Churn(A& allocator, const Case& run, int number, Meeting& meeting,
           double milliseconds) {
  const auto now = run.workers == 1 ? ThreadCpuNs : WallNs;
  std::vector<void*> held(run.burst);
  uint64_t pairs = run.burst;
  // First uses (of a thread, a section, a cache) take as long as a sample.
  for (const uint64_t start = WallNs(); WallNs() - start < 5000000;) {
    Pairs(allocator, run, pairs, held);
  }
  for (;;) {
    const uint64_t start = now();
    Pairs(allocator, run, pairs, held);
    if (now() - start > 700000) break;
    pairs *= 2;
  }
  Meet(meeting, run.workers);
  std::vector<double> samples;
  const uint64_t end = WallNs() + static_cast<uint64_t>(milliseconds * 1e6);
  while (WallNs() < end || samples.size() < 3) {
    const uint64_t start = now();
    Pairs(allocator, run, pairs, held);
    samples.push_back(static_cast<double>(now() - start) /
                      static_cast<double>(pairs));
  }
  meeting.ns[static_cast<size_t>(number)] = Median(std::move(samples));
  // Nobody is measured alone.
  meeting.finished.fetch_add(1);
  while (meeting.finished.load() < run.workers) {
    Pairs(allocator, run, run.burst, held);
  }
}

template <typename A>
void Consume(A& allocator, int order, Meeting& meeting) {
  Ring& ring = meeting.ring;
  uint64_t tail = 0;
  for (;;) {
    while (tail == ring.head_seen) {
      ring.tail.store(tail, std::memory_order_release);
      const bool last = meeting.produced.load(std::memory_order_acquire);
      ring.head_seen = ring.head.load(std::memory_order_acquire);
      if (tail != ring.head_seen) break;
      if (last) return;
      Pause();
    }
    const uint64_t ticket = ring.tickets[tail % kRingEntries];
    ++tail;
    if (tail % 16 == 0) ring.tail.store(tail, std::memory_order_release);
    allocator.FreeSent(ticket, order);
  }
}

template <typename A>
void ProduceBlocks(A& allocator, int order, Ring& ring, uint64_t blocks) {
  uint64_t head = ring.head.load(std::memory_order_relaxed);
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t ticket = allocator.Send(allocator.Allocate(order), order);
    while (head - ring.tail_seen >= kRingEntries) {
      ring.tail_seen = ring.tail.load(std::memory_order_acquire);
      if (head - ring.tail_seen >= kRingEntries) Pause();
    }
    ring.tickets[head % kRingEntries] = ticket;
    ring.head.store(++head, std::memory_order_release);
  }
}

template <typename A>
void Produce(A& allocator, int order, Meeting& meeting, double milliseconds) {
  uint64_t blocks = 1024;
  for (const uint64_t start = WallNs(); WallNs() - start < 5000000;) {
    ProduceBlocks(allocator, order, meeting.ring, blocks);
  }
  for (;;) {
    const uint64_t start = WallNs();
    ProduceBlocks(allocator, order, meeting.ring, blocks);
    if (WallNs() - start > 700000) break;
    blocks *= 2;
  }
  std::vector<double> samples;
  const uint64_t end = WallNs() + static_cast<uint64_t>(milliseconds * 1e6);
  while (WallNs() < end || samples.size() < 3) {
    const uint64_t start = WallNs();
    ProduceBlocks(allocator, order, meeting.ring, blocks);
    samples.push_back(static_cast<double>(WallNs() - start) /
                      static_cast<double>(blocks));
  }
  meeting.ns[0] = meeting.ns[1] = Median(std::move(samples));
  meeting.produced.store(true, std::memory_order_release);
  // What is on offer goes with its offerer.
  const Ring& ring = meeting.ring;
  const uint64_t head = ring.head.load(std::memory_order_relaxed);
  while (ring.tail.load(std::memory_order_acquire) != head) Pause();
}

// What worker `number` of a case does, pinned to CPU `number`.
template <typename A>
void Work(A& allocator, const Arguments& arguments, int number,
          Meeting& meeting) {
  PinToCpu(number);
  const Case& run = arguments.run;
  if (run.shape != Shape::kProducerConsumer) {
    Churn(allocator, run, number, meeting, arguments.milliseconds);
    return;
  }
  Meet(meeting, run.workers);
  if (number == 0) {
    Produce(allocator, run.order, meeting, arguments.milliseconds);
  } else {
    Consume(allocator, run.order, meeting);
  }
}

}  // namespace memtuned::bench

#endif  // MEMTUNED_TESTS_BENCH_WORKLOAD_H_
