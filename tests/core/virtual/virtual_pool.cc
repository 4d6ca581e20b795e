// SPDX-License-Identifier: Apache-2.0
#include "tests/core/virtual/virtual_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/slot_table.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {

PoolSnapshot::PoolSnapshot(Segment& segment, uint32_t fibers)
    : base_(segment.mapping().base),
      bytes_(base_, base_ + segment.header().total_bytes),
      last_used_(fiber_last_used, fiber_last_used + fibers),
      written_(base_, bytes_.size()) {}

void PoolSnapshot::PutBack() { PutBack({{}, last_used_}); }

PoolSnapshot::Moment PoolSnapshot::Now() const {
  Moment moment;
  moment.bytes.reserve(written_.pages().size() * kPageSizeBytes);
  for (size_t at : written_.pages()) {
    moment.bytes.insert(moment.bytes.end(), base_ + at,
                        base_ + at + kPageSizeBytes);
  }
  moment.last_used.assign(fiber_last_used, fiber_last_used + last_used_.size());
  return moment;
}

void PoolSnapshot::PutBack(const Moment& moment) {
  std::copy(moment.last_used.begin(), moment.last_used.end(), fiber_last_used);
  size_t nth = 0;  // byte of the moment; pages written later were as at first
  for (size_t at : written_.pages()) {
    const char* was =
        nth < moment.bytes.size() ? &moment.bytes[nth] : &bytes_[at];
    nth += kPageSizeBytes;
    if (std::memcmp(base_ + at, was, kPageSizeBytes) == 0) continue;
    std::memcpy(base_ + at, was, kPageSizeBytes);
  }
}

uint64_t PoolSnapshot::DigestNow() const {
  uint64_t digest = 0xcbf29ce484222325ull;
  for (size_t at = 0; at < bytes_.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, base_ + at, sizeof(word));
    digest = (digest ^ word) * 0x100000001b3ull;
  }
  return digest;
}

PagesetLimits SmallLimits(uint32_t batch, uint32_t high) {
  PagesetLimits limits;
  limits.policy = PagesetPolicy::kAdaptive;
  limits.batch = batch;
  limits.high_min = high;
  limits.high_max = high;
  limits.scale_max = 0;
  return limits;
}

VirtualPool::VirtualPool(const VirtualPoolOptions& options)
    : pool_({.topology = TopologyBuilder(options.topology)
                             .OsIndexes(options.node_indexes)
                             .Build(),
             .node_pages = options.node_pages,
             .nr_threads = std::max(64u, 4 * options.fibers)}),
      first_(pool_.MakeAllocator()),
      second_(pool_.MakeAllocator()),
      threads_(options.fibers) {
  for (Zone& zone : segment().zones()) {
    pool_.Publish(options.limits, zone.shared().number);
    Store(zone.shared().depot_max_pages, options.depot_max_pages);
  }
  std::vector<std::function<void()>> first_steps(options.fibers, [this] {
    TakeThreadSlot(segment(), first_->owner(), &Thread());
    for (Allocator* allocator : {second_.get(), first_.get()}) {
      const Pfn pfn = allocator->Allocate(0);
      CHECK(allocator->Free(pfn, 0) == FreeResult::kFreed);
    }
  });
  env::VirtualMachine machine(segment().mapping().nr_cpus);
  CHECK(machine.Run(first_steps) == env::VirtualMachine::Outcome::kFinished);
  pool_.DrainEverything();
}

uint64_t VirtualPool::DrainPagesetOf(uint32_t cpu, uint32_t zone) {
  return Pageset(segment().mapping(), segment().zone(zone),
                 PagesetOf(cpu, zone), Thread())
      .Drain();
}

uint64_t VirtualPool::DrainDepot(uint32_t zone) {
  return Pageset::DrainDepot(segment().mapping(), segment().zone(zone),
                             Thread());
}

void VirtualPool::On(uint32_t cpu, std::function<void()> body) {
  std::vector<std::function<void()>> bodies(cpu + 1, [] {});
  bodies[cpu] = std::move(body);
  env::VirtualMachine machine(segment().mapping().nr_cpus);
  CHECK(machine.Run(bodies) == env::VirtualMachine::Outcome::kFinished);
}

std::string VirtualPool::Problem() {
  ZoneChecker checker(segment());
  std::string problem = checker.Check();
  if (!problem.empty()) return problem;
  for (Allocator* allocator : {first_.get(), second_.get()}) {
    const auto it = checker.pages().of_owner.find(allocator->owner());
    const uint64_t named =
        it == checker.pages().of_owner.end() ? 0 : it->second;
    const uint64_t counted = HeldPages(segment(), allocator->owner());
    if (named == counted) continue;
    return "process " + std::to_string(allocator->owner()) + " is named by " +
           std::to_string(named) + " pages and counts " +
           std::to_string(counted);
  }
  return "";
}

Exploration VirtualPool::Explore(const ExplorerOptions& options,
                                 std::vector<std::function<void()>> bodies,
                                 std::function<std::string()> check,
                                 std::function<void()> prepare) {
  PoolSnapshot snapshot = TakeSnapshot();
  Scenario scenario;
  scenario.prepare = [&] {
    snapshot.PutBack();
    if (prepare) prepare();
  };
  scenario.bodies = std::move(bodies);
  scenario.check = [&] {
    const std::string problem = check ? check() : "";
    return problem.empty() ? Problem() : problem;
  };
  const Exploration found = Explorer(options).Explore(scenario);
  if (!found.failure.empty()) {
    EXPECT_EQ(Explorer(options).Replay(scenario, found.schedule),
              found.failure);
  }
  snapshot.PutBack();
  return found;
}

void ExpectAllSound(const char* what, const ExplorerOptions& options,
                    const Exploration& found, uint64_t at_least) {
  std::printf(
      "  %s: %llu schedules with at most %d preemptions, up to %llu "
      "points each\n",
      what, static_cast<unsigned long long>(found.schedules),
      options.preemptions,
      static_cast<unsigned long long>(found.longest_steps));
  EXPECT_EQ(found.failure, "") << "schedule: \"" << found.schedule << '"';
  EXPECT_TRUE(found.complete || !found.failure.empty());
  EXPECT_GE(found.schedules, at_least);
}

void ExpectFailure(const char* what, const Exploration& found) {
  std::printf("  %s: schedule %llu, \"%s\": %s\n", what,
              static_cast<unsigned long long>(found.schedules),
              found.schedule.c_str(), found.failure.c_str());
  EXPECT_NE(found.failure, "");
}

}  // namespace memtuned
