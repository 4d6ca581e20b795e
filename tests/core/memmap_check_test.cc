// SPDX-License-Identifier: Apache-2.0
#include "core/memmap_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/slot_table.h"
#include "tests/support/test_segment.h"

namespace memtuned {
namespace {

using testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

class MemmapCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    BecomeDaemon(pool_.segment());
    TakeThreadSlot(pool_.segment(), kDaemonProcess, &daemon_);
    // Carved, with blocks of many orders in it.
    auto allocator = pool_.MakeAllocator();
    std::vector<std::pair<Pfn, int>> held;
    for (int i = 0; i < 2000; ++i) {
      held.emplace_back(allocator->Allocate(i % 5), i % 5);
    }
    for (size_t i = 0; i < held.size(); i += 2) {
      allocator->Free(held[i].first, held[i].second);
    }
    pool_.DrainEverything();
  }
  void TearDown() override { ReleaseThreadSlot(pool_.segment(), daemon_); }

  absl::Status Check() { return CheckMemmap(pool_.segment(), daemon_); }

  TestSegment pool_;
  ThreadContext daemon_;
};

TEST_F(MemmapCheckTest, FindsNothingInAPoolInUse) {
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(MemmapCheckTest, NamesThePageThatIsNoBlock) {
  const Mapping& m = pool_.mapping();
  const PageWord good(LoadRelaxed(m.memmap[0].word));
  for (const PageWord bad :
       {good.With(PageKind::kFree, 12, 0),
        good.With(PageKind::kUntouched, 0, 0),
        good.With(PageKind::kAllocated, good.order(), 0),
        good.With(PageKind::kCached, good.order(), m.nr_chunks),
        PageWord(0x0123456789abcdefull)}) {
    Store(m.memmap[0].word, bad.bits());

    const absl::Status status = Check();

    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bad.bits();
    EXPECT_THAT(Message(status), HasSubstr("page 0 of section 0"));
  }
  Store(m.memmap[0].word, good.bits());
  EXPECT_TRUE(Check().ok());
}

TEST_F(MemmapCheckTest, RaisesNoFalseAlarmWhileThePoolIsUsed) {
  std::atomic<int> using_it{3};
  std::vector<std::thread> users;
  for (int t = 0; t < 3; ++t) {
    users.emplace_back([this, &using_it, t] {
      auto allocator = pool_.MakeAllocator();
      std::vector<Pfn> held;
      for (int round = 0; round < 20000 * RunScale(); ++round) {
        const int order = (round + t) % 11;
        for (int i = 0; i < 50; ++i) held.push_back(allocator->Allocate(order));
        for (Pfn pfn : held) {
          if (pfn.value != kNil) allocator->Free(pfn, order);
        }
        held.clear();
      }
      --using_it;
    });
  }

  int checks = 0;
  for (; using_it.load() > 0; ++checks) {
    const absl::Status status = Check();
    if (!status.ok()) ADD_FAILURE() << status;
  }

  for (std::thread& user : users) user.join();
  EXPECT_GT(checks, 10);
}

}  // namespace
}  // namespace memtuned
