// SPDX-License-Identifier: Apache-2.0
// A real pool in anonymous memory for tests: any topology, any size down to a
// zone of 64 pages, frames or none.
#ifndef MEMTUNED_TESTS_SUPPORT_TEST_SEGMENT_H_
#define MEMTUNED_TESTS_SUPPORT_TEST_SEGMENT_H_

#include <sched.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/allocator.h"
#include "core/segment.h"

namespace memtuned {

struct TestSegmentOptions {
  // Empty nodes: "1 node, 4 cpus".
  Topology topology = {};
  // One for each node; a shorter list repeats its last entry.
  std::vector<uint64_t> node_pages = {4 * kPagesPerSection};
  bool frames = false;
  uint32_t first_sections = kNil;  // all
  uint64_t llc_pages_per_cpu = 0;
  uint32_t nr_threads = 64;
  const char* policy = "memtuned";
  // No watermarks to speak of: min 0, step 1/10000.
  bool low_watermarks = true;
  // kClosed: what this machine has.
  GuardKind guard = GuardKind::kClosed;
};

// Aborts when the pool cannot be made: tests do not go on from there.
class TestSegment {
 public:
  explicit TestSegment(const TestSegmentOptions& options = {});

  Segment& segment() { return *segment_; }
  const Mapping& mapping() const { return segment_->mapping(); }
  Zone& zone(uint32_t number = 0) { return segment_->zone(number); }
  // The pageset of a zone that this thread uses while pinned.
  PagesetShared& PagesetHere(uint32_t zone = 0);

  ProcessOwner TakeProcess();
  // For a process slot of its own.
  std::unique_ptr<Allocator> MakeAllocator();

  // As the daemon sets a tunable: stored, then recalculated.
  void Set(TunableId id, const TunableValue& value);
  // Limits as given, whatever the tunables say.
  void Publish(const PagesetLimits& limits, uint32_t zone = 0);

  // Returns what the calling thread's pageset and the depot hold, and puts
  // the policy's state back to that of a pageset never used.
  void ResetPagesetHere(uint32_t zone = 0);
  void DrainEverything();

 private:
  std::unique_ptr<Segment> segment_;
};

// Keeps the calling thread on one CPU while it lives.
class PinnedToOneCpu {
 public:
  // `nth` of the CPUs it may use, modulo their number.
  explicit PinnedToOneCpu(int nth = 0);
  ~PinnedToOneCpu();
  PinnedToOneCpu(const PinnedToOneCpu&) = delete;
  PinnedToOneCpu& operator=(const PinnedToOneCpu&) = delete;

  static int UsableCpus();

 private:
  cpu_set_t before_;
};

// A whole number from the environment, for runs longer than usual.
uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise);

// 1 in release builds, less in debug builds and under sanitizers: scales the
// length of runs.
double RunScale();

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_SUPPORT_TEST_SEGMENT_H_
