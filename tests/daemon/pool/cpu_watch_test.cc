// SPDX-License-Identifier: Apache-2.0
#include "daemon/pool/cpu_watch.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/recalculate.h"
#include "tests/daemon/pool/pool_test_util.h"
#include "tests/support/test_segment.h"

namespace memtuned {
namespace {

class CpuWatchTest : public testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream(file_ + ".new") << text << "\n";
    std::filesystem::rename(file_ + ".new", file_);
  }
  uint32_t HighMin() { return pool_.zone().LimitsNow().high_min; }

  TempDir dir_;
  const std::string file_ = dir_.path() + "/online";
  TestSegment pool_{[] {
    TestSegmentOptions options;
    options.low_watermarks = false;
    return options;
  }()};
};

TEST_F(CpuWatchTest, LimitsFollowTheCpusThatAreThere) {
  const uint32_t with_four = HighMin();
  Write("0-3");
  CpuWatch watch(&pool_.segment(), file_, std::chrono::milliseconds(5));

  Write("0-1");
  const bool doubled = Eventually([&] { return HighMin() >= 2 * with_four; });
  Write("0-3");
  const bool back = Eventually([&] { return HighMin() == with_four; });

  EXPECT_TRUE(doubled) << HighMin() << " after " << with_four;
  EXPECT_TRUE(back);
}

TEST_F(CpuWatchTest, AFileThatSaysNothingChangesNothing) {
  const uint32_t with_four = HighMin();
  CpuWatch watch(&pool_.segment(), file_, std::chrono::milliseconds(5));

  for (const char* text : {"", "x", "0-", "99999"}) {
    Write(text);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(HighMin(), with_four) << text;
  }
}

TEST_F(CpuWatchTest, ACpuThatGoesLeavesNothingInItsPageset) {
  auto allocator = pool_.MakeAllocator();
  const Pfn pfn = allocator->Allocate(0);
  ASSERT_EQ(allocator->Free(pfn, 0), FreeResult::kFreed);
  PagesetShared& pageset = pool_.PagesetHere();
  ASSERT_GT(LoadRelaxed(pageset.pages), 0u);
  CpuWatch watch(&pool_.segment(), file_, std::chrono::milliseconds(5));

  Write("3");  // the test runs on one of the others

  EXPECT_TRUE(Eventually([&] { return LoadRelaxed(pageset.pages) == 0; }));
}

}  // namespace
}  // namespace memtuned
