// SPDX-License-Identifier: Apache-2.0
// Making and attaching a segment: what is refused, what both sides see.
#include "core/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "core/allocator.h"
#include "core/slot_table.h"
#include "core/snapshot.h"
#include "tests/support/test_segment.h"
#include "tests/support/topology_builder.h"
#include "tests/support/zone_checker.h"

namespace memtuned {
namespace {

using testing::HasSubstr;

SegmentConfig Config(uint64_t pages = kPagesPerSection) {
  SegmentConfig config;
  config.name = "t";
  config.topology = TopologyBuilder("2 nodes, 4 cpus").Build();
  config.nodes = {{0, pages}, {1, 64}};
  config.tunables = DefaultTunables();
  config.with_frames = false;
  return config;
}

std::vector<int> Duplicate(const std::vector<int>& fds) {
  std::vector<int> copies;
  for (int fd : fds) copies.push_back(dup(fd));
  return copies;
}

TEST(SegmentCreateTest, RefusesSizesThatCannotBe) {
  SegmentConfig config = Config();
  config.nodes = {{0, 64}};
  EXPECT_EQ(Segment::Create(config).status().code(),
            absl::StatusCode::kInvalidArgument);
  config = Config(0);
  config.nodes[1].pages = 0;
  EXPECT_THAT(std::string(Segment::Create(config).status().message()),
              HasSubstr("0 sections"));
  config = Config(uint64_t{kMaxSections} << kSectionShift);
  EXPECT_EQ(Segment::Create(config).status().code(),
            absl::StatusCode::kInvalidArgument);
  config = Config(UINT64_MAX);
  EXPECT_EQ(Segment::Create(config).status().code(),
            absl::StatusCode::kInvalidArgument);
  config = Config();
  config.nr_processes = 0;
  EXPECT_THAT(std::string(Segment::Create(config).status().message()),
              HasSubstr("nr_processes is 0; allowed 1 to"));
  config = Config();
  config.topology.nodes.clear();
  EXPECT_FALSE(Segment::Create(config).ok());
}

TEST(SegmentCreateTest, GivesTwoPoolsOfOneNameDifferentIds) {
  auto one = Segment::Create(Config());
  auto two = Segment::Create(Config());

  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE((*one)->header().id, (*two)->header().id);
}

TEST(SegmentCreateTest, FixesTheSizesOfItsFilesForGood) {
  SegmentConfig config = Config();
  config.with_frames = true;
  const auto segment = Segment::Create(config);
  ASSERT_TRUE(segment.ok()) << segment.status();
  std::vector<int> files = (*segment)->frame_fds();
  ASSERT_EQ(files.size(), 2u);
  files.push_back((*segment)->metadata_fd());

  for (int file : files) {
    struct stat info {};
    ASSERT_EQ(fstat(file, &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(fcntl(file, F_GET_SEALS),
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    for (off_t size : {off_t{0}, info.st_size + 4096}) {
      EXPECT_EQ(ftruncate(file, size), -1);
      EXPECT_EQ(errno, EPERM);
    }
    EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_EQ(errno, EPERM);
  }
}

// Opens a segment's files anew for reading and attaches to them.
std::unique_ptr<Segment> View(const Segment& segment) {
  const auto open_again = [](int fd) {
    return open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                O_RDONLY | O_CLOEXEC);
  };
  std::vector<int> frames;
  for (int fd : segment.frame_fds()) frames.push_back(open_again(fd));
  auto view = Segment::Attach(open_again(segment.metadata_fd()),
                              std::move(frames), Segment::Access::kRead);
  EXPECT_TRUE(view.ok()) << view.status();
  return view.ok() ? *std::move(view) : nullptr;
}

TEST(SegmentViewTest, ShowsTheFiguresAndTheFramesOfAPool) {
  TestSegment pool({.frames = true});
  auto allocator = pool.MakeAllocator();
  const Pfn pfn = allocator->Allocate(0);
  const uint64_t offset = uint64_t{pfn.value} << kPageShift;
  pool.segment().frames()[offset] = 'x';

  const auto view = View(pool.segment());

  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->frames()[offset], 'x');
  const Snapshot seen = ReadSnapshot(*view, true);
  const Snapshot real = ReadSnapshot(pool.segment(), true);
  ASSERT_EQ(seen.processes.size(), 1u);
  EXPECT_EQ(seen.processes[0].allocated_pages, 1u);
  EXPECT_EQ(seen.zones[0].free_pages, real.zones[0].free_pages);
  EXPECT_EQ(seen.tunables, real.tunables);
}

// It cannot write down that it found something wrong.
TEST(SegmentViewTest, SeesABrokenPoolWithoutTouchingIt) {
  TestSegment pool({.frames = true});
  const auto view = View(pool.segment());
  ASSERT_NE(view, nullptr);
  const auto batch = static_cast<size_t>(TunableId::kPagesetBatchFactor);
  Store(pool.segment().header().tunables[batch], ~uint64_t{0});
  Store(pool.zone().shared().managed_pages, ~uint64_t{0} >> 1);

  const Snapshot seen = ReadSnapshot(*view, true);

  EXPECT_EQ(seen.zones[0].state, ZoneState::kDegraded);
  EXPECT_FALSE(seen.degraded) << "nobody wrote it down";
  EXPECT_EQ(ReadSnapshot(pool.segment(), true).degraded, true);
}

TEST(SegmentAttachTest, SeesWhatTheCreatorSees) {
  TestSegment pool({.node_pages = {1024}, .frames = true});
  auto attached = Segment::Attach(dup(pool.segment().metadata_fd()),
                                  Duplicate(pool.segment().frame_fds()));
  ASSERT_TRUE(attached.ok());
  Segment& other = **attached;
  auto allocator = pool.MakeAllocator();
  const Pfn pfn = allocator->Allocate(0);
  const uint64_t offset = uint64_t{pfn.value} << kPageShift;
  pool.segment().frames()[offset] = 'm';

  EXPECT_EQ(other.frames()[offset], 'm');
  EXPECT_EQ(LoadRelaxed(other.mapping().page(pfn).word),
            LoadRelaxed(pool.mapping().page(pfn).word));
  EXPECT_EQ(reinterpret_cast<uint64_t>(other.frames()) %
                (uint64_t{kPagesPerSection} << kPageShift),
            0u);
}

TEST(SegmentAttachTest, RefusesWhatIsNoSegment) {
  const int empty = memfd_create("x", MFD_CLOEXEC);
  EXPECT_EQ(Segment::Attach(empty, {}).status().code(),
            absl::StatusCode::kDataLoss);
  const int zeros = memfd_create("x", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(zeros, 1 << 20), 0);
  EXPECT_THAT(std::string(Segment::Attach(zeros, {}).status().message()),
              HasSubstr("bad magic"));
  EXPECT_FALSE(Segment::Attach(-1, {}).ok());
}

// A copy of a segment's metadata with one field changed.
class BrokenSegmentTest : public testing::Test {
 protected:
  absl::Status AttachWith(void (*change)(SegmentHeader&)) {
    Segment& good = pool_.segment();
    const uint64_t bytes = good.header().total_bytes;
    const int fd = memfd_create("broken", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
    void* copy =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    std::memcpy(copy, static_cast<const void*>(&good.header()), bytes);
    change(*static_cast<SegmentHeader*>(copy));
    munmap(copy, bytes);
    return Segment::Attach(fd, {}).status();
  }

  TestSegment pool_;
};

TEST_F(BrokenSegmentTest, AnUnchangedCopyAttaches) {
  EXPECT_TRUE(AttachWith([](SegmentHeader&) {}).ok());
}

TEST_F(BrokenSegmentTest, AnotherLayoutIsAPreconditionThatFailed) {
  EXPECT_EQ(AttachWith([](SegmentHeader& h) { ++h.layout_version; }).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AttachWith([](SegmentHeader& h) { ++h.abi_hash; }).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AttachWith([](SegmentHeader& h) {
              h.guard = static_cast<GuardKind>(9);
            }).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      AttachWith([](SegmentHeader& h) { h.page_size_bytes = 65536; }).code(),
      absl::StatusCode::kFailedPrecondition);
}

TEST_F(BrokenSegmentTest, SizesThatLieAreDataLoss) {
  void (*const changes[])(SegmentHeader&) = {
      [](SegmentHeader& h) { h.nr_nodes = 0; },
      [](SegmentHeader& h) { h.nr_nodes = 1 << 30; },
      [](SegmentHeader& h) { h.nr_zones = 600; },
      [](SegmentHeader& h) { h.nr_cpus = 5000; },
      [](SegmentHeader& h) { h.nr_sections = ~0u; },
      [](SegmentHeader& h) { h.nr_pages = ~0u; },
      [](SegmentHeader& h) { h.nr_pages += 1 << 14; },
      [](SegmentHeader& h) { h.nr_chunks = ~0u; },
      [](SegmentHeader& h) { h.nr_processes = 0; },
      [](SegmentHeader& h) { h.nr_threads = ~0u; },
      [](SegmentHeader& h) { h.section_map_words = ~uint64_t{0}; },
      [](SegmentHeader& h) { h.total_bytes += 4096; },
      [](SegmentHeader& h) { h.total_bytes = 0; }};
  for (const auto& change : changes) {
    EXPECT_EQ(AttachWith(change).code(), absl::StatusCode::kDataLoss)
        << "change " << &change - changes;
  }
}

class InitialisationTest : public testing::Test {
 protected:
  InitialisationTest()
      : pool_({.node_pages = {4 * kPagesPerSection}, .first_sections = 1}) {}
  Shared32& State(uint32_t section) {
    return pool_.mapping().sections[section].state;
  }
  bool Next() {
    return *pool_.segment().InitialiseNextSection(0, kCreatorOwner);
  }
  uint64_t Managed() {
    return LoadRelaxed(pool_.zone().shared().managed_pages);
  }

  TestSegment pool_;
};

TEST_F(InitialisationTest, BringsEachSectionOnce) {
  EXPECT_FALSE(pool_.segment().Initialised());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Next());

  EXPECT_FALSE(Next());
  EXPECT_TRUE(pool_.segment().Initialised());
  EXPECT_EQ(Managed(), 4 * kPagesPerSection);
}

// Whoever was at it may be dead: its section is neither lost nor waited for.
TEST_F(InitialisationTest, FinishesWhatSomebodyElseBegan) {
  Store(State(2), static_cast<uint32_t>(SectionState::kPopulating));

  EXPECT_TRUE(Next());
  EXPECT_TRUE(Next());
  EXPECT_EQ(State(2), static_cast<uint32_t>(SectionState::kPopulating));
  EXPECT_TRUE(Next());

  EXPECT_EQ(Managed(), 4 * kPagesPerSection);
  EXPECT_TRUE(pool_.segment().Initialised());
  EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), "");
}

TEST_F(InitialisationTest, ReturnsToASectionWhoseFramesCouldNotBeHad) {
  Store(State(1), static_cast<uint32_t>(SectionState::kPristine));
  EXPECT_TRUE(Next());
  Store(State(1), static_cast<uint32_t>(SectionState::kOffline));

  EXPECT_TRUE(Next());
  EXPECT_TRUE(Next());

  EXPECT_EQ(Managed(), 4 * kPagesPerSection);
}

TEST_F(InitialisationTest, ManyThreadsAtItBringEachSectionOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      while (Next()) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(Managed(), 4 * kPagesPerSection);
  EXPECT_EQ(pool_.segment().SectionsInitialised(), 4u);
  EXPECT_EQ(ZoneChecker(pool_.segment()).Check(), "");
}

TEST_F(InitialisationTest, AnAllocationNeverFailsWhileASectionIsUnderWay) {
  auto allocator = pool_.MakeAllocator();
  for (uint32_t i : {1u, 2u, 3u}) {
    Store(State(i), static_cast<uint32_t>(SectionState::kPopulating));
  }

  for (int i = 0; i < 4 * 32; ++i) {
    ASSERT_NE(allocator->Allocate(kMaxOrder).value, kNil) << i;
  }

  EXPECT_EQ(allocator->Allocate(0).value, kNil);
}

TEST(SlotTableTest, HandsOutEverySlotOnceAndReusesThemAsOthers) {
  SegmentConfig config = Config();
  config.nr_processes = 4;
  auto segment = Segment::Create(config);
  ASSERT_TRUE(segment.ok());
  std::set<ProcessOwner> owners;
  for (int i = 0; i < 4; ++i) {
    owners.insert(*TakeProcessSlot(**segment, {}));
  }
  EXPECT_EQ(owners.size(), 4u);
  EXPECT_EQ(owners.count(0), 0u);
  EXPECT_EQ(TakeProcessSlot(**segment, {}).status().code(),
            absl::StatusCode::kResourceExhausted);

  ReleaseProcessSlot(**segment, *owners.begin());
  const auto again = TakeProcessSlot(**segment, {});

  ASSERT_TRUE(again.ok());
  EXPECT_EQ(owners.count(*again), 0u);
  EXPECT_EQ(FindProcessSlot(**segment, *owners.begin()), nullptr);
  EXPECT_NE(FindProcessSlot(**segment, *again), nullptr);
}

TEST(SlotTableTest, MoreThreadsThanSlotsStillWork) {
  SegmentConfig config = Config();
  config.nr_threads = 1;
  auto segment = Segment::Create(config);
  ASSERT_TRUE(segment.ok());
  const ProcessOwner owner = *TakeProcessSlot(**segment, {});
  Allocator allocator(**segment, owner);
  const Pfn first = allocator.Allocate(0);
  Pfn second{kNil};

  std::thread([&] { second = allocator.Allocate(3); }).join();

  EXPECT_EQ(HeldPages(**segment, owner), 9u);
  EXPECT_EQ(allocator.Free(second, 3), FreeResult::kFreed);
  std::thread([&] { allocator.Free(first, 0); }).join();
  EXPECT_EQ(HeldPages(**segment, owner), 0u);
}

TEST(SlotTableTest, AThreadThatEndsLeavesItsCountsBehind) {
  TestSegment pool;
  auto allocator = pool.MakeAllocator();
  Pfn pfn{kNil};

  std::thread([&] { pfn = allocator->Allocate(2); }).join();

  EXPECT_EQ(HeldPages(pool.segment(), allocator->owner()), 4u);
  EXPECT_EQ(allocator->Free(pfn, 2), FreeResult::kFreed);
  EXPECT_EQ(HeldPages(pool.segment(), allocator->owner()), 0u);
}

TEST(TunableCodeTest, RoundTripsEveryDefaultAndExtremes) {
  for (const TunableDef& def : TunableTable()) {
    const TunableValue value = DefaultValue(def);
    EXPECT_EQ(DecodeTunable(def, EncodeTunable(def, value)), value) << def.name;
    for (const char* choice : def.choices) {
      const TunableValue text = std::string(choice);
      EXPECT_EQ(DecodeTunable(def, EncodeTunable(def, text)), text);
    }
  }
}

}  // namespace
}  // namespace memtuned
