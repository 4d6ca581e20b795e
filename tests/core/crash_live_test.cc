// SPDX-License-Identifier: Apache-2.0
// Real processes killed by SIGKILL at each of their stores, one after the
// other, in one pool that lives through all of it: what the kernel says of the
// dead is believed, and every page is free again each time.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/mm/pageset.h"
#include "core/reap.h"
#include "core/slot_table.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

// A process of its own: its mapping, its allocator.
struct Child {
  Segment& segment;
  Allocator& allocator;
  ThreadContext thread;
};

// Who waits for the dead waits for ever: says when it was.
volatile uint64_t store_tried = 0;
void SayWhereItHangs(int) {
  std::fprintf(stderr, "stuck after a death at store %lu\n",
               static_cast<unsigned long>(store_tried));
  _exit(1);
}
constexpr unsigned kMostSecondsATrial = 20;

struct Victim {
  // Before the countdown, and what is counted.
  std::function<void(Child&)> prepare;
  std::function<void(Child&)> body;
};

class CrashLiveTest : public testing::Test {
 protected:
  CrashLiveTest()
      : pool_({.topology = TopologyBuilder("1 node, 64 cpus").Build(),
               .node_pages = {1024},
               .nr_threads = 16}),
        mine_(pool_.MakeAllocator()) {
    CHECK(TakeThreadSlot(pool_.segment(), mine_->owner(), &thread_));
    Store(pool_.zone().shared().depot_max_pages, uint64_t{256});
    PagesetLimits limits;
    limits.policy = PagesetPolicy::kMemtuned;
    limits.batch = 3;
    limits.high_min = limits.high_max = 8;
    pool_.Publish(limits);
  }

  ~CrashLiveTest() override { alarm(0); }

  // Runs a victim in a process of its own until its n-th store.
  // Returns: whether that came before its end.
  bool DiesAt(const Victim& victim, ProcessOwner owner, uint64_t n) {
    store_tried = n;
    std::signal(SIGALRM, SayWhereItHangs);
    alarm(kMostSecondsATrial);
    const pid_t child = fork();
    if (child == 0) RunVictim(victim, owner, n);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed || status == 0) << "at store " << n << ": " << status;
    return killed;
  }

  [[noreturn]] void RunVictim(const Victim& victim, ProcessOwner owner,
                              uint64_t n) {
    auto segment = Segment::Attach(dup(pool_.segment().metadata_fd()), {});
    if (!segment.ok()) _exit(2);
    auto* allocator = new Allocator(**segment, owner);  // no destructor runs
    auto* child = new Child{**segment, *allocator, {}};
    child->thread.process = owner;
    if (!TakeThreadSlot(**segment, owner, &child->thread)) _exit(3);
    if (victim.prepare) victim.prepare(*child);
    env::stores_to_live = n;
    victim.body(*child);
    env::stores_to_live = 0;
    _exit(0);
  }

  // Blocks of a few orders come and go.
  void Work() {
    for (int order : {0, 1, 4}) {
      const Pfn pfn = mine_->Allocate(order);
      ASSERT_NE(pfn.value, kNil) << order;
      ASSERT_EQ(mine_->Free(pfn, order), FreeResult::kFreed) << order;
    }
    pool_.DrainEverything();
  }

  // The pool is sound, and all of it is free.
  std::string Problem() {
    ZoneChecker checker(pool_.segment());
    const std::string problem = checker.Check();
    if (!problem.empty()) return problem;
    const uint64_t managed = LoadRelaxed(pool_.zone().shared().managed_pages);
    if (pool_.zone().FreePages() != managed) return "pages are missing";
    return HeldPages(pool_.segment(), mine_->owner()) == 0 ? "" : "miscounted";
  }

  // Every n (in slow builds, some), up to `most`: the victim dies; this process
  // works and reaps, in one order and the other.
  void DieAtEveryStore(const char* what, const Victim& victim,
                       uint64_t most = 100'000) {
    const auto start = std::chrono::steady_clock::now();
    const auto step = static_cast<uint64_t>(1 / RunScale());
    uint64_t deaths = 0;
    for (uint64_t n = 1; n <= most; n += step) {
      const ProcessOwner owner = pool_.TakeProcess();
      const bool killed = DiesAt(victim, owner, n);
      if (n % 2 == 0) Work();
      ReapProcess(pool_.segment(), owner, thread_);
      if (n % 2 != 0) Work();
      pool_.DrainEverything();
      ASSERT_EQ(Problem(), "") << what << ", killed at store " << n;
      if (!killed) break;
      ++deaths;
    }
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    std::printf("  %s: %lu processes killed in %.1f s\n", what, deaths,
                took.count());
    EXPECT_GE(deaths, 20 / step);
  }

  // Parent and children meet at one pageset.
  PinnedToOneCpu pinned_;
  TestSegment pool_;
  std::unique_ptr<Allocator> mine_;
  ThreadContext thread_;
};

void TakeBlocks(Child& child, std::vector<Pfn>& blocks, int n) {
  for (int i = 0; i < n; ++i) blocks.push_back(child.allocator.Allocate(0));
}

TEST_F(CrashLiveTest, WhileItAllocates) {
  std::vector<Pfn> blocks;
  DieAtEveryStore("allocate, with refills",
                  {{}, [&](Child& child) { TakeBlocks(child, blocks, 6); }});
}

TEST_F(CrashLiveTest, WhileItFrees) {
  std::vector<Pfn> blocks;
  DieAtEveryStore("free, with flushes",
                  {[&](Child& child) { TakeBlocks(child, blocks, 10); },
                   [&](Child& child) {
                     for (Pfn pfn : blocks) child.allocator.Free(pfn, 0);
                   }});
}

TEST_F(CrashLiveTest, WhileItUsesManyOrders) {
  DieAtEveryStore("allocate and free, orders 1 to 9",
                  {{}, [](Child& child) {
                     for (int order : {1, 3, 5, 9}) {
                       const Pfn pfn = child.allocator.Allocate(order);
                       child.allocator.Free(pfn, order);
                     }
                   }});
}

// The stores of both threads count; either dies wherever it stands.
TEST_F(CrashLiveTest, WhileASiblingIsAtWork) {
  DieAtEveryStore("with a sibling at work",
                  {[](Child& child) {
                     static std::atomic<bool> runs{false};
                     std::thread([&child] {
                       PinnedToOneCpu elsewhere(1);
                       for (;;) {
                         const Pfn pfn = child.allocator.Allocate(1);
                         child.allocator.Free(pfn, 1);
                         runs = true;
                       }
                     }).detach();
                     while (!runs) sched_yield();
                   },
                   [](Child& child) {
                     std::vector<Pfn> blocks;
                     TakeBlocks(child, blocks, 8);
                     for (Pfn pfn : blocks) child.allocator.Free(pfn, 0);
                   }},
                  500);
}

TEST_F(CrashLiveTest, WhileItDrains) {
  DieAtEveryStore("drain of a pageset and the depot",
                  {[](Child& child) {
                     std::vector<Pfn> blocks;
                     TakeBlocks(child, blocks, 7);
                     for (Pfn pfn : blocks) child.allocator.Free(pfn, 0);
                   },
                   [](Child& child) {
                     const Mapping& m = child.segment.mapping();
                     Zone& zone = child.segment.zone(0);
                     const CpuEntry& cpu = m.cpu_table[env::CurrentCpu()];
                     Pageset(m, zone, m.pagesets[LoadRelaxed(cpu.pageset)],
                             child.thread)
                         .Drain();
                     Pageset::DrainDepot(m, zone, child.thread);
                   }});
}

TEST_F(CrashLiveTest, WhileItReaps) {
  ProcessOwner dead = 0;
  const Victim holder{[](Child& child) {
                        std::vector<Pfn> blocks;
                        TakeBlocks(child, blocks, 5);
                        child.allocator.Allocate(3);
                      },
                      [](Child& child) { child.allocator.Allocate(4); }};
  const auto step = static_cast<uint64_t>(1 / RunScale());
  uint64_t deaths = 0;
  for (uint64_t n = 1;; n += step) {
    // The first one dies in the middle too, somewhere else each time.
    dead = pool_.TakeProcess();
    DiesAt(holder, dead, 1 + n % 60);
    const ProcessOwner reaper = pool_.TakeProcess();
    const bool killed = DiesAt(
        {{},
         [&](Child& child) { ReapProcess(child.segment, dead, child.thread); }},
        reaper, n);
    if (n % 2 == 0) Work();
    ReapProcess(pool_.segment(), dead, thread_);
    ReapProcess(pool_.segment(), reaper, thread_);
    Work();
    pool_.DrainEverything();
    ASSERT_EQ(Problem(), "") << "reaper killed at store " << n;
    if (!killed) break;
    ++deaths;
  }
  std::printf("  reap: %lu processes killed, and as many before them\n",
              deaths);
  EXPECT_GE(deaths, 20 / step);
}

}  // namespace
}  // namespace memtuned
