// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "nlohmann/json.hpp"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

class AuditLogTest : public testing::Test {
 protected:
  AuditLogTest() {
    char folder[] = "/tmp/memtuned-audit-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/audit.log";
  }
  ~AuditLogTest() override { std::filesystem::remove_all(folder_); }

  static std::vector<nlohmann::json> Lines(const std::string& path) {
    std::vector<nlohmann::json> lines;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

  std::string folder_, path_;
};

TEST_F(AuditLogTest, WritesOneObjectALine) {
  auto log = AuditLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();

  (*log)->Write({{"caller", "uid:1000"}, {"reason", "a\n\"b\""}});
  (*log)->Write({{"caller", "uid:1001"}});

  const auto lines = Lines(path_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["event"], "audit");
  EXPECT_EQ(lines[0]["caller"], "uid:1000");
  EXPECT_EQ(lines[0]["reason"], "a\n\"b\"");
  EXPECT_EQ(lines[0]["time"].get<std::string>().size(),
            std::string("2000-01-01T00:00:00.000Z").size());
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777 & ~0640u, 0u);
}

TEST_F(AuditLogTest, AppendsToWhatIsThere) {
  { (*AuditLog::Open(path_))->Write({{"n", "1"}}); }
  { (*AuditLog::Open(path_))->Write({{"n", "2"}}); }

  EXPECT_EQ(Lines(path_).size(), 2u);
}

TEST_F(AuditLogTest, LosesAndTearsNothingWhenMovedAwayUnderLoad) {
  auto log = AuditLog::Open(path_);
  ASSERT_TRUE(log.ok());
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        (*log)->Write({{"text", std::string(200, 'x')}});
      }
    });
  }
  size_t lines = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string moved = path_ + std::to_string(i);
    std::filesystem::rename(path_, moved);
    (*log)->Reopen();
  }
  for (std::thread& writer : writers) writer.join();

  for (int i = 0; i < 10; ++i) {
    lines += Lines(path_ + std::to_string(i)).size();
  }
  lines += Lines(path_).size();
  EXPECT_EQ(lines, 2000u);
}

TEST_F(AuditLogTest, RefusesAPathItCannotWrite) {
  const auto folder = AuditLog::Open("/no/such/folder/audit.log");
  std::filesystem::create_symlink("/dev/null", path_);
  const auto link = AuditLog::Open(path_);

  EXPECT_THAT(std::string(folder.status().message()),
              HasSubstr("/no/such/folder/audit.log"));
  EXPECT_FALSE(link.ok());
}

TEST_F(AuditLogTest, KeepsTheOldFileWhenTheNewOneCannotBeOpened) {
  auto log = AuditLog::Open(path_);
  ASSERT_TRUE(log.ok());
  const std::string moved = path_ + ".1";
  std::filesystem::rename(path_, moved);
  std::filesystem::create_directory(path_);

  (*log)->Reopen();
  (*log)->Write({{"n", "1"}});

  EXPECT_EQ(Lines(moved).size(), 1u);
}

TEST_F(AuditLogTest, OffWritesNothing) {
  auto log = AuditLog::Open("off");
  ASSERT_TRUE(log.ok());

  (*log)->Write({{"n", "1"}});
  (*log)->Reopen();

  EXPECT_FALSE(std::filesystem::exists("off"));
}

}  // namespace
}  // namespace memtuned
