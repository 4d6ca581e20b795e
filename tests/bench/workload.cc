// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workload.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <thread>

namespace memtuned::bench {
namespace {

// Takes `prefix` and a number off the front of `text`.
bool TakeNumber(std::string_view prefix, std::string_view* text, int* number) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, *number);
  if (error != std::errc()) return false;
  *text = std::string_view(rest, static_cast<size_t>(end - rest));
  return true;
}

bool TakeWord(std::string_view word, std::string_view* text) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

bool ParseShape(std::string_view* text, Case* run) {
  int burst = 1;
  const bool bulk = text->starts_with("bulk");
  if (TakeNumber(bulk ? "bulk" : "burst", text, &burst)) {
    run->shape = bulk ? Shape::kBulk : Shape::kBurst;
    run->burst = static_cast<uint32_t>(burst);
    return burst >= 2 && burst <= 65536;
  }
  if (TakeWord("producer-consumer", text)) {
    run->shape = Shape::kProducerConsumer;
    return true;
  }
  return TakeWord("lifo", text);
}

bool ParseCase(std::string_view text, Case* run) {
  if (!ParseShape(&text, run)) return false;
  if (!TakeNumber("/order", &text, &run->order)) return false;
  if (!TakeNumber("/", &text, &run->workers)) return false;
  run->processes = text.starts_with("process");
  const bool one = text == "thread";
  if (!one && text != "threads" && text != "processes") return false;
  return run->order >= 0 && run->order <= 10 && one == (run->workers == 1) &&
         run->workers >= 1 && run->workers <= 2 &&
         (run->shape != Shape::kProducerConsumer || run->workers == 2);
}

cpu_set_t UsableSet() {
  // As it was before any thread pinned itself.
  static const cpu_set_t usable = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  return usable;
}

uint64_t ReadClock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

void WaitFor(const std::vector<pid_t>& children) {
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) {
      for (pid_t other : children) kill(other, SIGKILL);
      Die("a worker process failed");
    }
  }
}

}  // namespace

void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(2);
}

void Skip(const std::string& why) {
  std::fprintf(stderr, "skipped: %s\n", why.c_str());
  std::_Exit(77);
}

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  if (argc != 3 || !ParseCase(argv[1], &arguments.run)) {
    Die("usage: CASE MILLISECONDS\n"
        "CASE: lifo|burst2..burst65536|bulk2..bulk65536|producer-consumer, "
        "/order0../order10, /1thread|2threads|2processes");
  }
  arguments.milliseconds = std::strtod(argv[2], nullptr);
  if (!(arguments.milliseconds > 0 && arguments.milliseconds <= 60000)) {
    Die(std::string("MILLISECONDS is ") + argv[2] + "; allowed 1 to 60000");
  }
  if (UsableCpus() < arguments.run.workers) {
    Skip("two workers need two CPUs");
  }
  return arguments;
}

int UsableCpus() {
  const cpu_set_t usable = UsableSet();
  return CPU_COUNT(&usable);
}

void PinToCpu(int n) {
  const cpu_set_t usable = UsableSet();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) Die("cannot pin");
    return;
  }
  Die("no such CPU");
}

uint64_t WallNs() { return ReadClock(CLOCK_MONOTONIC); }
uint64_t ThreadCpuNs() { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Meeting& NewMeeting() {
  void* memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("no memory");
  return *new (memory) Meeting;
}

void RunWorkers(const Case& run, const std::function<void()>& open,
                const std::function<void(int)>& worker) {
  if (!run.processes) {
    open();
    std::vector<std::thread> threads;
    for (int i = 0; i < run.workers; ++i) threads.emplace_back(worker, i);
    for (std::thread& thread : threads) thread.join();
    return;
  }
  std::vector<pid_t> children;
  for (int i = 0; i < run.workers; ++i) {
    const pid_t child = fork();
    if (child < 0) Die("cannot fork");
    if (child == 0) {
      worker(i);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  open();
  WaitFor(children);
}

void PrintResult(const Case& run, const Meeting& meeting,
                 const std::string& allocator) {
  double sum = 0;
  for (int i = 0; i < run.workers; ++i) {
    sum += meeting.ns[static_cast<size_t>(i)];
  }
  std::printf("%.3f %s\n", sum / run.workers, allocator.c_str());
}

}  // namespace memtuned::bench
