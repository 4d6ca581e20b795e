// SPDX-License-Identifier: Apache-2.0
// What is refused before hwloc sees it, and why.
#include "daemon/host/topology_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/daemon/host/temp_dir.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

// A whole file with `body` between the topology tags.
std::string Xml(const std::string& body, const std::string& version = "2.0") {
  return "<?xml version=\"1.0\"?>\n<topology version=\"" + version + "\">\n" +
         body + "</topology>\n";
}

constexpr char kMachine[] =
    "<object type=\"Machine\" os_index=\"0\">\n</object>\n";

std::string RefusedXml(const std::string& text) {
  const TempDir dir;
  const std::string path = dir.Write("topology.xml", text);
  const absl::Status status = ReadTopologyXml(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  return std::string(status.message());
}

std::string RefusedSynthetic(const std::string& description) {
  const absl::Status status = CheckSynthetic(description).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << description;
  return std::string(status.message());
}

TEST(TopologySpecTest, SplitsTheFourForms) {
  EXPECT_EQ(SplitTopologySpec("live")->kind, TopologyInputKind::kLive);
  EXPECT_EQ(SplitTopologySpec("xml:a:b")->argument, "a:b");
  EXPECT_EQ(SplitTopologySpec("synthetic:node:2 pu:4")->argument,
            "node:2 pu:4");
  EXPECT_EQ(SplitTopologySpec("fsroot:/x")->kind, TopologyInputKind::kFsroot);
}

TEST(TopologySpecTest, RefusesAllElse) {
  for (const char* spec : {"", "live:", "Live", "xml", "xml:", "synthetic:",
                           "fsroot:", "node:2 pu:4", "file:x", " live"}) {
    const absl::Status status = SplitTopologySpec(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_THAT(std::string(status.message()), HasSubstr("allowed live, xml:"));
  }
}

TEST(TopologyXmlTest, ReadsAFile) {
  const TempDir dir;
  const std::string text = Xml(kMachine);

  EXPECT_EQ(*ReadTopologyXml(dir.Write("a.xml", text)), text);
}

TEST(TopologyXmlTest, SaysWhatLibhwlocCannotRead) {
  EXPECT_THAT(RefusedXml(Xml(kMachine, "3.0")),
              HasSubstr("version '3.0'; libhwloc 2.x reads versions 1 and 2"));
  EXPECT_THAT(RefusedXml(Xml("<object type=\"Machine\">\r\n</object>\r\n")),
              HasSubstr("CRLF"));
  EXPECT_THAT(RefusedXml(Xml("<object type=\"System\">\n</object>\n")),
              HasSubstr("several machines under a System object"));
}

TEST(TopologyXmlTest, SaysWhatIsNoTopology) {
  EXPECT_THAT(RefusedXml(""), HasSubstr("is empty"));
  EXPECT_THAT(RefusedXml("hello"), HasSubstr("no <topology> element"));
  EXPECT_THAT(RefusedXml(std::string(1 << 20, '<')),
              HasSubstr("no <topology> element"));
  EXPECT_THAT(RefusedXml("<topology version=\"2.0\""),
              HasSubstr("no <topology> element"));
  EXPECT_THAT(RefusedXml(std::string("<topology>\0</topology>", 22)),
              HasSubstr("zero bytes"));
  EXPECT_THAT(RefusedXml("<topology version=\"2.0\">\n<object"),
              HasSubstr("cut off"));
}

TEST(TopologyXmlTest, RefusesWhatIsNoRegularFile) {
  const TempDir dir;
  const std::string fifo = dir.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);

  EXPECT_EQ(ReadTopologyXml(dir.path() + "/absent").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadTopologyXml(dir.path()).status().message()),
              HasSubstr("is a directory"));
  for (const std::string& path : {fifo, std::string("/dev/null")}) {
    EXPECT_THAT(std::string(ReadTopologyXml(path).status().message()),
                HasSubstr("is not a regular file"));
  }
}

TEST(TopologyXmlTest, SaysWhenItMayNotReadAFile) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read any file";
  const TempDir dir;
  const std::string path = dir.Write("secret.xml", Xml(kMachine));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);

  EXPECT_EQ(ReadTopologyXml(path).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(TopologyXmlTest, RefusesAHugeFileWithoutReadingItWhole) {
  const TempDir dir;
  const std::string path = dir.Write("huge.xml", "<topology>");
  ASSERT_EQ(truncate(path.c_str(), int64_t{1} << 40), 0);

  EXPECT_THAT(std::string(ReadTopologyXml(path).status().message()),
              HasSubstr("more than 67108864 bytes"));
}

TEST(SyntheticTest, CountsTheCpus) {
  EXPECT_EQ(*CheckSynthetic("node:2 pu:128"), 256);
  EXPECT_EQ(*CheckSynthetic("pu:3"), 3);
  EXPECT_EQ(*CheckSynthetic("2 3 4"), 24);
  EXPECT_EQ(*CheckSynthetic("(memory=1) [numa(memory=2GB)] pack:2 pu:4"), 8);
  EXPECT_EQ(*CheckSynthetic("node:256 pu:16"), 4096);
}

TEST(SyntheticTest, RefusesMoreCpusThanTheLimit) {
  EXPECT_THAT(RefusedSynthetic("node:1 pu:4097"),
              HasSubstr("'pu:4097' asks for 1 times 4097 objects; at most "
                        "4096 CPUs"));
  EXPECT_THAT(RefusedSynthetic("pack:100000 core:100000 pu:2"),
              HasSubstr("100000"));
  EXPECT_THAT(RefusedSynthetic("pack:9223372036854775807 pu:3"),
              HasSubstr("at most 4096"));
  EXPECT_THAT(RefusedSynthetic("pu:99999999999999999999"),
              HasSubstr("too many objects"));
}

TEST(SyntheticTest, RefusesMoreNodesThanTheLimit) {
  EXPECT_THAT(RefusedSynthetic("node:257 pu:1"),
              HasSubstr("257 or more NUMA nodes; at most 256"));
  EXPECT_THAT(RefusedSynthetic("pack:200 [numa] [numa] pu:1"),
              HasSubstr("400 or more"));
}

TEST(SyntheticTest, NamesTheWordThatIsWrong) {
  EXPECT_THAT(RefusedSynthetic(""), HasSubstr("no level"));
  EXPECT_THAT(RefusedSynthetic("node:0 pu:1"), HasSubstr("'node:0' is less"));
  EXPECT_THAT(RefusedSynthetic("node:2 pu:-1"), HasSubstr("'pu:-1' is less"));
  EXPECT_THAT(RefusedSynthetic("node:2 pu"), HasSubstr("'pu' is not TYPE"));
  EXPECT_THAT(RefusedSynthetic("node:2x pu:1"), HasSubstr("'node:2x'"));
  EXPECT_THAT(RefusedSynthetic("node:2(memory=1GB"), HasSubstr("closing )"));
  EXPECT_THAT(RefusedSynthetic("[numa pu:1"), HasSubstr("closing ]"));
  EXPECT_THAT(RefusedSynthetic(std::string(100000, 'x')),
              HasSubstr("100000 characters"));
}

TEST(FsrootTest, NeedsATreeOfSys) {
  const TempDir dir;
  EXPECT_THAT(std::string(CheckFsroot(dir.path()).message()),
              HasSubstr("sys/devices/system/cpu"));

  dir.Write("sys/devices/system/cpu/online", "0\n");
  EXPECT_TRUE(CheckFsroot(dir.path()).ok());
}

}  // namespace
}  // namespace memtuned
