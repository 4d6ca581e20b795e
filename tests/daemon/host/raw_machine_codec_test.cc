// SPDX-License-Identifier: Apache-2.0
// A RawMachine through bytes and back.
#include "daemon/host/raw_machine_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtuned {
namespace {

RawMachine Sample() {
  RawMachine machine;
  machine.source = TopologySource::kSynthetic;
  machine.description = "synthetic:node:2 pu:1";
  machine.nodes = {{-1, ~uint64_t{0}, {0, 7}, false, true},
                   {1000, 5, {}, true, false}};
  machine.online_cpus = {0, 1};
  machine.allowed_cpus = {1};
  machine.complete_cpus = {0, 1, 2};
  machine.distances = {{10, 20}, {30, ~uint64_t{0}}};
  machine.nearest_in_tree = {{5, {1000, 0}}, {6, {}}};
  machine.warnings = {"", "odd"};
  return machine;
}

TEST(RawMachineCodecTest, BringsAMachineBack) {
  const RawMachine wanted = Sample();

  absl::StatusOr<RawMachine> got = DecodeRawMachine(EncodeRawMachine(wanted));

  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->source, wanted.source);
  EXPECT_EQ(got->description, wanted.description);
  ASSERT_EQ(got->nodes.size(), 2u);
  EXPECT_EQ(got->nodes[0].os_index, -1);
  EXPECT_EQ(got->nodes[0].memory_bytes, ~uint64_t{0});
  EXPECT_EQ(got->nodes[0].local_cpus, wanted.nodes[0].local_cpus);
  EXPECT_FALSE(got->nodes[0].allowed);
  EXPECT_TRUE(got->nodes[0].special);
  EXPECT_EQ(got->online_cpus, wanted.online_cpus);
  EXPECT_EQ(got->allowed_cpus, wanted.allowed_cpus);
  EXPECT_EQ(got->complete_cpus, wanted.complete_cpus);
  EXPECT_EQ(got->distances, wanted.distances);
  EXPECT_EQ(got->nearest_in_tree, wanted.nearest_in_tree);
  EXPECT_EQ(got->warnings, wanted.warnings);
}

TEST(RawMachineCodecTest, BringsAnErrorBack) {
  const absl::Status error = absl::NotFoundError("no such machine");

  EXPECT_EQ(DecodeRawMachine(EncodeRawMachine(error)).status(), error);
}

TEST(RawMachineCodecTest, RefusesEachCutAndAnyExtraByte) {
  const std::string bytes = EncodeRawMachine(Sample());

  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeRawMachine(bytes.substr(0, size)).status().code(),
              absl::StatusCode::kDataLoss)
        << size;
  }
  EXPECT_FALSE(DecodeRawMachine(bytes + "x").ok());
}

TEST(RawMachineCodecTest, RefusesCountsBeyondTheBytes) {
  EXPECT_FALSE(
      DecodeRawMachine(std::string(8, '\0') + std::string(200, '\xff')).ok());
  EXPECT_FALSE(DecodeRawMachine(std::string(200, '\x7f')).ok());
}

}  // namespace
}  // namespace memtuned
