// SPDX-License-Identifier: Apache-2.0
// Env on the real machine. Everything here is inline and, but for SpinPause
// and NowNs, free of system calls. Floor 0.
#ifndef MEMTUNED_CORE_BASE_ENV_LIVE_H_
#define MEMTUNED_CORE_BASE_ENV_LIVE_H_

#include <sched.h>
#include <sys/rseq.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/env_cost.h"

#if defined(__SANITIZE_THREAD__)
#define MEMTUNED_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define MEMTUNED_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define MEMTUNED_THREAD_SANITIZER 0
#endif

namespace memtuned::env {

// Cost: one load from the rseq area, which the kernel keeps current
// (sched_getcpu() takes 2.5 ns more). Returns: kNoCpu for a thread without a
// registered area; CurrentCpu() then asks the kernel.
inline constexpr uint32_t kNoCpu = ~0u;
// A number that no CPU has and CpuGlance never says.
inline constexpr uint32_t kNowhere = 1u << 31;
class CpuGlance {
 public:
  static CpuGlance OfThisThread() {
    const auto* area = reinterpret_cast<const volatile struct rseq*>(
        static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
    return CpuGlance(&area->cpu_id);
  }
  constexpr CpuGlance() = default;
  // Negative, that is, huge when not registered.
  uint32_t Now() const { return *word_; }
  const volatile uint32_t* word() const { return word_; }

 private:
  explicit CpuGlance(const volatile uint32_t* word) : word_(word) {}
  const volatile uint32_t* word_ = nullptr;
};
inline uint32_t CurrentCpuOrNone() { return CpuGlance::OfThisThread().Now(); }
uint32_t CurrentCpu();

// A restartable sequence (rseq(2)): compares, then stores. When the kernel
// takes the CPU away in between, the thread goes on at the abort label, which
// the signature before it marks, and starts again. It takes memory operands and
// one register: its callers have none to spare.
inline bool StoreIfHere(CpuGlance cpu_now, const uint32_t& cpu,
                        std::atomic<uint32_t>& word, const uint32_t& value) {
#if defined(__x86_64__)
  static_assert(offsetof(struct rseq, rseq_cs) ==
                offsetof(struct rseq, cpu_id) + 4);
  asm goto(
      // The descriptor: version, flags, start, length, abort.
      ".pushsection __rseq_cs, \"aw?\"\n"
      ".balign 32\n"
      "3: .long 0, 0\n"
      ".quad 1f, 2f - 1f, 4f\n"
      ".popsection\n"
      "0: leaq 3b(%%rip), %%rax\n"
      "movq %%rax, 4(%[cpu_id])\n"
      "1: movl (%[cpu_id]), %%eax\n"
      "cmpl %[cpu], %%eax\n"
      "jne %l[elsewhere]\n"
      "cmpl $0, (%[word])\n"
      "jne %l[elsewhere]\n"
      "movl %[value], %%eax\n"
      "movl %%eax, (%[word])\n"
      "2:\n"
      ".pushsection .text.unlikely, \"ax?\"\n"
      // ud1 with the signature as its operand, as rseq(2) has it.
      ".byte 0x0f, 0xb9, 0x3d\n"
      ".long 0x53053053\n"
      "4: jmp 0b\n"
      ".popsection\n"
      :
      : [cpu_id] "r"(cpu_now.word()), [cpu] "m"(cpu), [word] "r"(&word),
        [value] "m"(value)
      : "rax", "memory", "cc"
      : elsewhere);
#if MEMTUNED_THREAD_SANITIZER
  word.load(std::memory_order_acquire);  // it cannot read the lines above
#endif
  return true;
elsewhere:
#else
  (void)cpu_now, (void)cpu, (void)word, (void)value;
#endif
  return false;
}
// What an operation may wait for holders of locks that live: eight processes
// on two CPUs that are preempted in turn take 12 ms.
inline constexpr uint64_t kPatienceNs = 20'000'000;

void BarrierOnAllCpus();
bool JoinBarriers();
std::vector<int> OnlineCpus();

inline uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// Spins first, then gives the CPU away, then sleeps: the holder may be
// preempted, and a FIFO queue would convoy behind it.
void SpinPause(int round);

#ifdef MEMTUNED_CRASH_POINTS
// A build for tests: the process kills itself at the n-th store, or count, from
// now; 0: it does not.
inline std::atomic<uint64_t> stores_to_live{0};
void CountDown();
inline void SharedStore() {
  if (stores_to_live.load(std::memory_order_relaxed) != 0) CountDown();
}
inline void SharedCount() { SharedStore(); }
#else
inline void SharedStore() {}
inline void SharedCount() {}
#endif
inline void LockEdge(const void*) {}
inline void SharedLoad() {}
inline void Charge(Cost) {}

}  // namespace memtuned::env

#endif  // MEMTUNED_CORE_BASE_ENV_LIVE_H_
