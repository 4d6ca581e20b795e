// SPDX-License-Identifier: Apache-2.0
#include "tests/torture/stamp.h"

#include <gmock/gmock.h>

#include <vector>

namespace memtuned::torture {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kOwner = uint64_t{7} << 32 | 1234;
constexpr uint64_t kOffset = 5 * 8 * kPageBytes;

std::vector<char> Block(int order) {
  return std::vector<char>(kPageBytes << order, 'x');
}

TEST(StampTest, HoldsAsItWasWritten) {
  for (const bool whole : {false, true}) {
    std::vector<char> block = Block(3);
    const Stamp stamp = Stamp::Make(kOwner, kOffset, 3, whole, 99);

    stamp.Write(block.data());

    EXPECT_EQ(stamp.Check(block.data()), "");
    EXPECT_EQ(Stamp::Read(block.data()), stamp);
    EXPECT_TRUE(stamp.IsStamp());
    EXPECT_EQ(stamp.offset(), kOffset);
    EXPECT_EQ(stamp.order(), 3);
  }
}

TEST(StampTest, SeesEachByteOfTheFirstAndLastPageChange) {
  std::vector<char> block = Block(2);
  const Stamp stamp = Stamp::Make(kOwner, kOffset, 2, true, 1);
  stamp.Write(block.data());

  for (size_t i = 0; i < block.size(); ++i) {
    const size_t page = i / kPageBytes;
    const size_t in_page = i % kPageBytes;
    const bool stamped =
        in_page >= kHolderBytes &&
        (page == 0 || page == 3 || in_page < kHolderBytes + sizeof(Stamp));
    block[i] = static_cast<char>(block[i] ^ 1);
    EXPECT_EQ(stamp.Check(block.data()).empty(), !stamped) << i;
    block[i] = static_cast<char>(block[i] ^ 1);
  }
}

TEST(StampTest, SeesASmallBlockWithinALargeOne) {
  std::vector<char> large = Block(10);
  const Stamp stamp = Stamp::Make(kOwner, 0, 10, false, 1);
  stamp.Write(large.data());

  Stamp::Make(kOwner + 1, 700 * kPageBytes, 0, false, 1)
      .Write(large.data() + 700 * kPageBytes);

  EXPECT_THAT(stamp.Check(large.data()), HasSubstr("page 700"));
}

TEST(StampTest, TellsAStampFromOtherBytes) {
  std::vector<char> block(kPageBytes, 0);

  EXPECT_FALSE(Stamp::Read(block.data()).IsStamp());
  EXPECT_THAT(Stamp::Read(block.data()).Describe(), HasSubstr("no stamp"));
}

}  // namespace
}  // namespace memtuned::torture
