// SPDX-License-Identifier: Apache-2.0
// A process that writes where it should not: bytes are flipped in every part
// of a segment that is in use, while a daemon samples, drains, recovers, reaps
// and tunes. Its pool may break; the daemon neither crashes, nor hangs, nor
// reads or writes outside of the mapping (sanitizers, and the guard pages of
// the address space, look on).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/mm/pageset.h"
#include "core/online_cpus.h"
#include "core/reap.h"
#include "core/recalculate.h"
#include "core/slot_table.h"
#include "core/snapshot.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"

namespace memtuned {
namespace {

struct Part {
  const char* name;
  char* begin;
  size_t bytes;
};

class ScribbledSegmentTest : public testing::TestWithParam<uint64_t> {
 protected:
  ScribbledSegmentTest()
      : pool_({.topology = TopologyBuilder("2 nodes, 4 cpus").Build(),
               .node_pages = {kPagesPerSection + 600, 1024},
               .first_sections = 1,
               .nr_threads = 32}),
        random_(GetParam()) {
    BecomeDaemon(pool_.segment());
    TakeThreadSlot(pool_.segment(), kDaemonProcess, &daemon_);
  }
  ~ScribbledSegmentTest() override {
    ReleaseThreadSlot(pool_.segment(), daemon_);
  }

  // Something in every structure: blocks, pagesets, depots, offers, and a
  // process that died with a guard and the zone lock in hand.
  // NO_THREAD_SAFETY_ANALYSIS: the dead do not let go of their locks.
  void Use() NO_THREAD_SAFETY_ANALYSIS {
    auto allocator = pool_.MakeAllocator();
    std::vector<std::pair<Pfn, int>> blocks;
    for (int i = 0; i < 2000; ++i) {
      const int order = i % 7 == 0 ? 1 + i % 4 : 0;
      const Pfn pfn = allocator->Allocate(
          order, i % 5 == 0 ? PageType::kPurgeable : PageType::kOrdinary);
      if (pfn.value != kNil) blocks.emplace_back(pfn, order);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 3 != 0) {
        allocator->Free(blocks[i].first, blocks[i].second);
      } else if (i % 9 == 0) {
        allocator->Offer(blocks[i].first, blocks[i].second);
      }
    }
    dead_.push_back(allocator->owner());
    allocator.reset();
    ThreadContext thread;
    TakeThreadSlot(pool_.segment(), dead_.back(), &thread);
    Zone& zone = pool_.zone();
    if (zone.Lock(thread)) {
      pool_.mapping().lives[thread.slot - pool_.mapping().threads].word |=
          kLifeDied;
    }
    thread.life.Leave();
  }

  std::vector<Part> Parts() {
    const Mapping& m = pool_.mapping();
    const auto part = [](const char* name, const auto* first, size_t n) {
      return Part{name, const_cast<char*>(reinterpret_cast<const char*>(first)),
                  n * sizeof(*first)};
    };
    return {part("header", &pool_.segment().header(), 1),
            part("nodes", pool_.segment().nodes(), m.nr_nodes),
            part("zonelists", m.zonelists, size_t{m.nr_nodes} * m.nr_zones),
            part("zones", m.zones, m.nr_zones),
            part("cpu table", m.cpu_table, 16),
            part("online cpus", m.online_cpus, 4),
            part("processes", m.processes, m.nr_processes),
            part("process sections", m.process_sections,
                 size_t{m.nr_processes} * m.words_of_sections()),
            part("threads", m.threads, m.nr_threads),
            part("lives", m.lives, m.nr_threads),
            part("sections", m.sections, m.nr_sections),
            part("section maps", m.section_maps,
                 pool_.segment().header().section_map_words % 4096),
            part("pagesets", m.pagesets, size_t{m.nr_zones} * m.nr_cpus),
            part("chunks", m.chunks, std::min(m.nr_chunks, 64u)),
            part("free areas", m.free_areas, m.nr_sections),
            part("memmap", m.memmap, 4096)};
  }

  uint64_t Below(uint64_t n) { return random_() % n; }

  // A byte, or a word that is a number somebody might follow.
  void Scribble(const std::vector<Part>& parts) {
    const Part& part = parts[Below(parts.size())];
    if (part.bytes == 0) return;
    if (Below(2) == 0) {
      reinterpret_cast<std::atomic<uint8_t>*>(part.begin)[Below(part.bytes)]
          .store(static_cast<uint8_t>(random_()), std::memory_order_relaxed);
      return;
    }
    constexpr uint32_t kOdd[] = {0, 1, 2, 63, 64, 65, 1u << 24, ~0u, ~0u - 1};
    reinterpret_cast<Shared32*>(part.begin)[Below(part.bytes / 4)].store(
        kOdd[Below(std::size(kOdd))], std::memory_order_relaxed);
  }

  // What a daemon does all day.
  void Look() {
    Segment& segment = pool_.segment();
    const Mapping& m = segment.mapping();
    daemon_.patience.Renew();
    switch (Below(9)) {
      case 0:
        ReadSnapshot(segment, /*full=*/Below(2) == 0);
        break;
      case 1:
        if (!dead_.empty()) {
          ReapProcess(segment, dead_[Below(dead_.size())], daemon_);
        }
        break;
      case 2:
        RecoverDeadOwners(segment, daemon_);
        break;
      case 3:
        for (uint32_t cpu = 0; cpu < m.nr_cpus; ++cpu) {
          Pageset(m, segment.zone(0), *m.PagesetOf(0, cpu), daemon_).Drain();
        }
        break;
      case 4:
        Pageset::DrainDepot(m, segment.zone(0), daemon_);
        break;
      case 5:
        Recalculate(segment, RecalculateTrigger::kRequest, daemon_.owner);
        break;
      case 6:
        (void)segment.InitialiseNextSection(
            static_cast<uint32_t>(Below(m.nr_zones)), daemon_.owner);
        break;
      case 7:
        SetOnlineCpus(segment, {0, static_cast<int>(Below(4))}, daemon_);
        break;
      default:
        for (ProcessOwner owner : dead_) {
          HeldPages(segment, owner);
          ProcessLeft(segment, owner);
        }
        if (auto owner = TakeProcessSlot(segment, {}); owner.ok()) {
          ReleaseProcessSlot(segment, *owner);
        }
        ReapThreads(segment, kDaemonProcess, daemon_);
    }
  }

  TestSegment pool_;
  std::mt19937_64 random_;
  ThreadContext daemon_;
  std::vector<ProcessOwner> dead_;
};

TEST_P(ScribbledSegmentTest, TheDaemonGoesOn) {
  Use();
  const std::vector<Part> parts = Parts();
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> longest{0};

  for (int i = 0; i < 300; ++i) {
    const uint64_t flips = 1 + Below(20);
    for (uint64_t k = 0; k < flips; ++k) Scribble(parts);
    const auto before = std::chrono::steady_clock::now();
    Look();
    longest = std::max<std::chrono::duration<double>>(
        longest, std::chrono::steady_clock::now() - before);
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) {
      break;
    }
  }

  // A lock that says it is held by a thread that runs is waited for.
  EXPECT_LT(longest.count(), 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScribbledSegmentTest,
                         testing::Range(uint64_t{1}, uint64_t{25}));

}  // namespace
}  // namespace memtuned
