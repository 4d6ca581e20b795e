// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/str_format.h"
#include "core/base/env.h"
#include "core/thread_context.h"
#include "tests/torture/durations.h"
#include "tests/torture/lock_report.h"
#include "tests/torture/measure.h"
#include "tests/torture/measured_pool.h"
#include "tests/torture/samples.h"

namespace memtuned::torture {
namespace {

constexpr uint64_t kTakeoverPatience = 2 * kSecond;
constexpr double kTakeoverBarMs = 1;

// A lock: how a process comes to die with it, and how another comes to have
// it. Both run in processes of their own.
struct LockCase {
  const char* name;
  // Returns: whether `owner` has it now.
  bool (*take)(Segment& segment, ThreadOwner owner);
  // Returns once the lock was had.
  void (*want)(Pool& pool);
};

bool TakeZone(Segment& segment, ThreadOwner owner) NO_THREAD_SAFETY_ANALYSIS {
  segment.zone(0).Lock(owner);
  return true;
}
// Blocks of the largest order come straight from the zone. For a holder that
// sleeps, as the victim does, each call waits 20 ms.
void WantZone(Pool& pool) {
  void* block = nullptr;
  while (block == nullptr) block = pool.Allocate(Pool::kMaxOrder);
  (void)pool.Free(block, Pool::kMaxOrder);
}

bool TakeTuning(Segment& segment, ThreadOwner owner) NO_THREAD_SAFETY_ANALYSIS {
  segment.header().tuning_lock.Lock(owner);
  return true;
}
void WantTuning(Pool& pool) {
  while (!pool.SetMemoryPolicy(Pool::MemoryPolicy::kLocal).ok()) {
  }
}

void PinToFirstCpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

PagesetShared& PagesetHere(Segment& segment) {
  const Mapping& m = segment.mapping();
  return m.pagesets[LoadRelaxed(m.cpu_table[env::CurrentCpu()].pageset)];
}

bool TakeGuard(Segment& segment, ThreadOwner owner) NO_THREAD_SAFETY_ANALYSIS {
  return PagesetHere(segment).guard.TryLock(
      owner, segment.mapping().SeatOf(env::CurrentCpu()));
}
// Nobody waits for a guard: those who use the pool on its CPU take it over.
void WantGuard(Pool& pool) {
  const auto& guard = PagesetHere(*pool.handle()->segment).guard;
  const ThreadOwner dead = guard.HolderNow();
  while (dead != 0 && guard.HolderNow() == dead) {
    void* block = pool.Allocate(0);
    if (block != nullptr) (void)pool.Free(block, 0);
  }
}

constexpr LockCase kLocks[] = {
    {"zone", TakeZone, WantZone},
    {"tuning", TakeTuning, WantTuning},
    {"pageset", TakeGuard, WantGuard},
};

// This thread's owner number: it has one once it used the pool.
ThreadOwner OwnerOf(Pool& pool) {
  void* block = pool.Allocate(0);
  if (block == nullptr) return 0;
  (void)pool.Free(block, 0);
  return LastUsedHere().owner;
}

// Returns: false, after it said why, when there is nothing to measure.
bool MeasureLock(MeasuredPool& measured, const LockCase& lock,
                 Samples* samples) {
  auto victim = measured.Start([&](Pool& pool) {
    PinToFirstCpu();
    const ThreadOwner owner = OwnerOf(pool);
    return owner != 0 && lock.take(*pool.handle()->segment, owner);
  });
  if (!victim) return false;
  auto next = measured.Start(
      [](Pool&) {
        PinToFirstCpu();
        return true;
      },
      lock.want);
  if (!next) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (measured.through_ns() != 0) {
    std::cerr << "memtuned-torture: nobody had to wait for the " << lock.name
              << " lock\n";
    return false;
  }
  const uint64_t killed = env::NowNs();
  victim->Signal(SIGKILL);
  while (measured.through_ns() == 0) {
    if (env::NowNs() - killed > kTakeoverPatience) {
      std::cerr << "memtuned-torture: 2 s after the kill "
                << DescribeHeldLocks(measured.segment()) << "\n";
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  samples->Add(measured.through_ns() - killed);
  next->Signal(SIGKILL);
  return measured.WaitUntilAlone();
}

// Returns: whether the median is within the bar.
bool MeasureRounds(MeasuredPool& measured, const LockCase& lock,
                   uint32_t rounds) {
  Samples samples;
  for (uint32_t round = 0; round < rounds; ++round) {
    if (!MeasureLock(measured, lock, &samples)) return false;
  }
  const double median = samples.Milliseconds(0.5);
  std::cout << absl::StrFormat(
                   "takeover: lock=%s rounds=%d kill_to_next_holder_ms "
                   "median=%.3f p99=%.3f max=%.3f bar=%.0f %s",
                   lock.name, rounds, median, samples.Milliseconds(0.99),
                   samples.Milliseconds(1), kTakeoverBarMs,
                   median <= kTakeoverBarMs ? "met" : "missed")
            << std::endl;
  return median <= kTakeoverBarMs;
}

}  // namespace

int MeasureTakeover(const Options& options) {
  bool met = true;
  for (const LockCase& lock : kLocks) {
    // A pool of its own: a lock that stays with the dead blocks only that.
    const auto measured = MeasuredPool::Create(options, "256MiB");
    met = measured != nullptr &&
          MeasureRounds(*measured, lock, options.rounds) && met;
  }
  return met ? 0 : 1;
}

}  // namespace memtuned::torture
