// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_segment.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/base/check.h"
#include "core/base/thread_state.h"
#include "core/mm/pageset.h"
#include "core/recalculate.h"
#include "core/slot_table.h"
#include "tests/support/topology_builder.h"

namespace memtuned {

TestSegment::TestSegment(const TestSegmentOptions& options) {
  SegmentConfig config;
  config.name = "test";
  config.topology = options.topology.nodes.empty()
                        ? TopologyBuilder("1 node, 4 cpus").Build()
                        : options.topology;
  for (size_t i = 0; i < config.topology.nodes.size(); ++i) {
    const uint64_t pages = i < options.node_pages.size()
                               ? options.node_pages[i]
                               : options.node_pages.back();
    config.nodes.push_back({config.topology.nodes[i].os_index, pages});
  }
  config.nr_processes = 16;
  config.nr_threads = options.nr_threads;
  config.llc_pages_per_cpu = options.llc_pages_per_cpu;
  config.with_frames = options.frames;
  config.first_sections = options.first_sections;
  config.guard = options.guard;
  config.tunables = DefaultTunables();
  const auto set = [&](TunableId id, const TunableValue& value) {
    config.tunables[static_cast<size_t>(id)] = value;
  };
  set(TunableId::kPagesetPolicy, std::string(options.policy));
  if (options.low_watermarks) {
    set(TunableId::kWatermarkMinFreeKbytes, int64_t{0});
    set(TunableId::kWatermarkScaleFactor, int64_t{1});
  }
  auto made = Segment::Create(config);
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", std::string(made.status().message()).c_str());
  }
  CHECK(made.ok());
  segment_ = std::move(*made);
}

PagesetShared& TestSegment::PagesetHere(uint32_t zone) {
  const CpuEntry& cpu = mapping().cpu_table[env::CurrentCpu()];
  PagesetShared* pageset = mapping().PagesetOf(zone, LoadRelaxed(cpu.cpu));
  CHECK(pageset != nullptr);
  return *pageset;
}

ProcessOwner TestSegment::TakeProcess() {
  ProcessIdentity identity;
  identity.pid = static_cast<uint32_t>(getpid());
  identity.start_time_ticks = StartTimeOf(identity.pid);
  auto owner = TakeProcessSlot(*segment_, identity);
  CHECK(owner.ok());
  return *owner;
}

std::unique_ptr<Allocator> TestSegment::MakeAllocator() {
  return std::make_unique<Allocator>(*segment_, TakeProcess());
}

void TestSegment::Set(TunableId id, const TunableValue& value) {
  Store(segment_->header().tunables[static_cast<size_t>(id)],
        EncodeTunable(GetTunable(id), value));
  const bool watermark = id == TunableId::kWatermarkMinFreeKbytes ||
                         id == TunableId::kWatermarkScaleFactor;
  Recalculate(
      *segment_,
      watermark ? RecalculateTrigger::kWatermark : RecalculateTrigger::kTunable,
      kCreatorOwner);
}

void TestSegment::Publish(const PagesetLimits& limits, uint32_t zone) {
  segment_->header().tuning_lock.Lock(kCreatorOwner);
  segment_->zone(zone).PublishLimits(limits);
  segment_->header().tuning_lock.Unlock();
}

void TestSegment::ResetPagesetHere(uint32_t zone) {
  PagesetShared& p = PagesetHere(zone);
  ThreadContext thread;
  thread.owner = kCreatorOwner;
  Pageset(mapping(), segment_->zone(zone), p, thread).Drain();
  Pageset::DrainDepot(mapping(), segment_->zone(zone), thread);
  p.guard.LockFromAnywhere(kCreatorOwner, mapping().guard);
  Store(p.high, 0u);
  p.free_count = 0;
  p.alloc_factor = 0;
  p.previous_free_was_high_order = false;
  p.seen = 0;
  p.guard.UnlockFromAnywhere(mapping().guard);
}

void TestSegment::DrainEverything() {
  ThreadContext thread;
  thread.owner = kCreatorOwner;
  for (Zone& zone : segment_->zones()) {
    for (uint32_t cpu = 0; cpu < mapping().nr_cpus; ++cpu) {
      PagesetShared* p = mapping().PagesetOf(zone.shared().number, cpu);
      Pageset(mapping(), zone, *p, thread).Drain();
    }
    Pageset::DrainDepot(mapping(), zone, thread);
  }
}

PinnedToOneCpu::PinnedToOneCpu(int nth) {
  CHECK(sched_getaffinity(0, sizeof(before_), &before_) == 0);
  int left = nth % CPU_COUNT(&before_);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before_) || left-- > 0) continue;
    CPU_SET(cpu, &one);
    break;
  }
  CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

int PinnedToOneCpu::UsableCpus() {
  cpu_set_t cpus;
  CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
  return CPU_COUNT(&cpus);
}

PinnedToOneCpu::~PinnedToOneCpu() {
  sched_setaffinity(0, sizeof(before_), &before_);
}

uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define MEMTUNED_TEST_SANITIZED
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MEMTUNED_TEST_SANITIZED
#endif

double RunScale() {
#if defined(MEMTUNED_TEST_SANITIZED)
  return 0.05;
#elif !defined(NDEBUG)
  return 0.2;
#else
  return 1;
#endif
}

}  // namespace memtuned
