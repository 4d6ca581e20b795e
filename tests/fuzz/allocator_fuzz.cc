// SPDX-License-Identifier: Apache-2.0
// Any sequence of calls on a small pool: two processes that allocate, free
// rightly and wrongly, offer, adopt, drain, change limits and initialise
// sections. The pool must be sound in between and at the end.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/base/check.h"
#include "core/mm/pageset.h"
#include "core/recalculate.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

struct Block {
  Pfn pfn;
  int order;
  bool offered;
};

class Session {
 public:
  Session(const uint8_t* data, size_t size)
      : data_(data),
        size_(size),
        pool_({.topology = TopologyBuilder("2 nodes, 2 cpus").Build(),
               .node_pages = {FirstZonePages(), 64},
               .first_sections = 1}) {
    for (auto& process : processes_) process.allocator = pool_.MakeAllocator();
  }

  void Run() {
    for (int step = 0; at_ < size_ && step < 512; ++step) {
      Step();
      if (step % 64 == 63) ExpectSound();
    }
    ExpectSound();
    for (Process& process : processes_) {
      for (const Block& block : process.held) {
        CHECK(process.allocator->Free(block.pfn, block.order) ==
              FreeResult::kFreed);
      }
    }
    pool_.DrainEverything();
    ExpectSound();
    for (Zone& zone : pool_.segment().zones()) {
      CHECK(zone.FreePages() == LoadRelaxed(zone.shared().managed_pages));
    }
  }

 private:
  struct Process {
    std::unique_ptr<Allocator> allocator;
    std::vector<Block> held;
  };

  // Mostly less than a section, so that checks are quick; some with a pristine
  // one and one that is still to come.
  uint64_t FirstZonePages() {
    const uint64_t size = Byte();
    return size < 16 ? 2 * kPagesPerSection + 64 + size : size * 8;
  }
  uint32_t Byte() { return at_ < size_ ? data_[at_++] : 0; }

  void ExpectSound() {
    const std::string problem = ZoneChecker(pool_.segment()).Check();
    if (problem.empty()) return;
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }

  void Step() {
    const uint32_t call = Byte();
    Process& process = processes_[call & 1];
    switch (call >> 1 & 15) {
      case 0:
      case 1:
      case 2:
        return Allocate(process, static_cast<int>(Byte() % 12) - 1, 1);
      case 3:
        return Allocate(process, 0, 1 + Byte());
      case 4:
        return Allocate(process, 3, 1 + Byte() % 64);
      case 5:
      case 6:
        return Free(process, 1);
      case 7:
      case 8:
        return Free(process, 1 + Byte());
      case 9:
        return FreeAnything(process);
      case 10:
        return Bulk(process);
      case 11:
        return Offer(process);
      case 12:
        return Adopt(process, processes_[(call & 1) ^ 1]);
      case 13:
        return Drain();
      case 14:
        return Limits();
      default:
        return Tune();
    }
  }

  void Allocate(Process& process, int order, uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      const Pfn pfn = process.allocator->Allocate(
          order, i % 8 == 7 ? PageType::kPurgeable : PageType::kOrdinary);
      if (pfn.value == kNil) return;
      CHECK(order >= 0 && order <= kMaxOrder);
      process.held.push_back({pfn, order, false});
    }
  }
  void Free(Process& process, uint32_t times) {
    for (uint32_t i = 0; i < times && !process.held.empty(); ++i) {
      std::swap(process.held[Byte() % process.held.size()],
                process.held.back());
      const Block block = process.held.back();
      process.held.pop_back();
      CHECK(process.allocator->Free(block.pfn, block.order) ==
            FreeResult::kFreed);
      CHECK(process.allocator->Free(block.pfn, block.order) !=
            FreeResult::kFreed);
    }
  }
  // A page number out of the blue: freed exactly when it is held.
  void FreeAnything(Process& process) {
    const Pfn pfn{Byte() << 8 | Byte()};
    const int order = static_cast<int>(Byte() % 13) - 1;
    const FreeResult result = process.allocator->Free(pfn, order);
    for (size_t i = 0; i < process.held.size(); ++i) {
      if (process.held[i].pfn != pfn) continue;
      CHECK((result == FreeResult::kFreed) == (process.held[i].order == order));
      if (result == FreeResult::kFreed) {
        process.held.erase(process.held.begin() + static_cast<long>(i));
      }
      return;
    }
    CHECK(result != FreeResult::kFreed);
  }
  void Bulk(Process& process) {
    const int order = static_cast<int>(Byte() % 5);
    std::vector<Pfn> blocks(Byte());
    blocks.resize(process.allocator->AllocateBulk(order, blocks));
    for (Pfn pfn : blocks) process.held.push_back({pfn, order, false});
  }
  void Offer(Process& process) {
    if (process.held.empty()) return;
    Block& block = process.held[Byte() % process.held.size()];
    const FreeResult result =
        block.offered ? process.allocator->Revoke(block.pfn, block.order)
                      : process.allocator->Offer(block.pfn, block.order);
    CHECK(result == FreeResult::kFreed);
    block.offered = !block.offered;
  }
  void Adopt(Process& process, Process& from) {
    if (from.held.empty()) return;
    const size_t i = Byte() % from.held.size();
    const Block block = from.held[i];
    const FreeResult result = process.allocator->Adopt(block.pfn, block.order);
    CHECK((result == FreeResult::kFreed) == block.offered);
    if (result != FreeResult::kFreed) return;
    from.held.erase(from.held.begin() + static_cast<long>(i));
    process.held.push_back({block.pfn, block.order, false});
  }
  void Drain() {
    ThreadContext thread;
    thread.owner = kCreatorOwner;
    const Mapping& m = pool_.mapping();
    const uint32_t zone = Byte() % m.nr_zones;
    const uint32_t cpu = Byte() % (m.nr_cpus + 1);
    if (cpu == m.nr_cpus) {
      Pageset::DrainDepot(m, pool_.zone(zone), thread);
    } else {
      Pageset(m, pool_.zone(zone), *m.PagesetOf(zone, cpu), thread).Drain();
    }
  }
  // Limits that no machine has, but that readers must survive.
  void Limits() {
    PagesetLimits limits;
    limits.policy = static_cast<PagesetPolicy>(Byte() % kNumPolicies);
    limits.batch = Byte() * 2;
    limits.high_min = Byte() * 4;
    limits.high_max = Byte() * 64;
    limits.free_high_threshold = Byte();
    limits.scale_max = Byte() % 8;
    limits.chunked_flush = Byte() % 2 != 0;
    const uint32_t zone = Byte() % pool_.mapping().nr_zones;
    pool_.Publish(limits, zone);
    Store(pool_.zone(zone).shared().depot_max_pages, uint64_t{Byte()} * 32);
  }
  void Tune() {
    if (Byte() % 2 == 0) {
      CHECK(pool_.segment()
                .InitialiseNextSection(Byte() % pool_.mapping().nr_zones,
                                       kCreatorOwner)
                .ok());
      return;
    }
    pool_.Set(TunableId::kPagesetPolicy,
              std::string(PolicyName(
                  static_cast<PagesetPolicy>(Byte() % kNumPolicies))));
  }

  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
  TestSegment pool_;
  Process processes_[2];
};

}  // namespace
}  // namespace memtuned

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  memtuned::Session(data, size).Run();
  return 0;
}
