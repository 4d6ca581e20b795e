// SPDX-License-Identifier: Apache-2.0
// Addresses, and why nobody answers at one.
#include "client/ctl/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "tests/client/ctl/temp_dir.h"

namespace memtuned::ctl {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// CheckSocket() as a user without rights. The child only reports.
std::string CheckAsNobody(const Target& target) {
  std::array<int, 2> pipe_ends;
  if (pipe(pipe_ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
      _exit(1);
    }
    const absl::Status status = CheckSocket(target);
    const std::string text = std::to_string(static_cast<int>(status.code())) +
                             " " + std::string(status.message());
    const ssize_t written = write(pipe_ends[1], text.data(), text.size());
    _exit(written < 0 ? 1 : 0);
  }
  close(pipe_ends[1]);
  std::string text;
  std::array<char, 512> buffer;
  for (ssize_t got;
       (got = read(pipe_ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

TEST(TargetTest, ReadsPathsAndUnixAddresses) {
  EXPECT_EQ(ParseTarget("/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ParseTarget("unix:/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ParseTarget("unix:///run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ParseTarget("unix:x.sock")->Address(), "unix:x.sock");
}

TEST(TargetTest, DefaultsToTheEnvironmentThenToTheSystemSocket) {
  setenv("MEMTUNED_TARGET", "/run/other.sock", 1);
  EXPECT_EQ(ParseTarget("")->path, "/run/other.sock");

  unsetenv("MEMTUNED_TARGET");
  EXPECT_EQ(ParseTarget("")->Address(), kDefaultTarget);
}

TEST(TargetTest, ReadsHostsAndPorts) {
  EXPECT_EQ(ParseTarget("db-1:9751")->Address(), "db-1:9751");
  EXPECT_EQ(ParseTarget("dns:///db-1:9751")->Address(), "db-1:9751");
  EXPECT_EQ(ParseTarget("[::1]:9751")->host, "::1");
  EXPECT_EQ(ParseTarget("[::1]:9751")->Address(), "[::1]:9751");
  EXPECT_TRUE(ParseTarget("db-1:9751")->is_tcp());
  EXPECT_TRUE(CheckSocket(*ParseTarget("db-1:9751")).ok());
}

TEST(TargetTest, RefusesWhatIsNoAddress) {
  const auto target = ParseTarget("localhost");

  ASSERT_TRUE(absl::IsInvalidArgument(target.status()));
  EXPECT_THAT(std::string(target.status().message()),
              HasSubstr("'localhost'; allowed unix:/PATH, /PATH, HOST:PORT"));
  EXPECT_FALSE(ParseTarget("dns:///x").ok());
  EXPECT_FALSE(ParseTarget("unix:").ok());
}

TEST(TargetTest, RefusesPathsLongerThanASocketCanHave) {
  const auto target = ParseTarget("/" + std::string(200, 'x'));

  EXPECT_THAT(std::string(target.status().message()),
              HasSubstr("201 bytes, a socket's at most 107"));
}

TEST(TargetTest, SaysThatTheSocketIsMissing) {
  const TempDir dir;
  const absl::Status status = CheckSocket({dir.File("none.sock")});

  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no daemon at unix:" + dir.File("none.sock") +
                        ": the socket does not exist (start it with"));
}

TEST(TargetTest, SaysThatAFileIsNoSocket) {
  const TempDir dir;
  std::ofstream(dir.File("file")) << "x";

  EXPECT_THAT(std::string(CheckSocket({dir.File("file")}).message()),
              HasSubstr("that is no socket"));
}

TEST(TargetTest, SaysWhoMayConnect) {
  const TempDir dir;
  chmod(dir.path().c_str(), 0755);
  const int fd = BindSocket(dir.File("s"), true);
  chmod(dir.File("s").c_str(), geteuid() == 0 ? 0660 : 0000);

  const std::string answer = CheckAsNobody({dir.File("s")});

  const uid_t me = geteuid() == 0 ? kNobody : geteuid();
  EXPECT_THAT(answer,
              HasSubstr("7 permission denied on socket " + dir.File("s") +
                        ": you are uid " + std::to_string(me)));
  EXPECT_THAT(answer, HasSubstr("the socket belongs to uid " +
                                std::to_string(geteuid())));
  EXPECT_THAT(answer, HasSubstr(geteuid() == 0 ? "mode 0660" : "mode 0000"));
  close(fd);
}

TEST(TargetTest, NamesAFolderThatCannotBeEntered) {
  const TempDir dir;
  chmod(dir.path().c_str(), geteuid() == 0 ? 0700 : 0000);

  const std::string answer = CheckAsNobody({dir.File("s")});

  EXPECT_THAT(answer, HasSubstr("7 permission denied on socket"));
  EXPECT_THAT(answer, HasSubstr("the folder " + dir.path() + " belongs to"));
  chmod(dir.path().c_str(), 0700);
}

TEST(TargetTest, ExplainsASocketThatNobodyListensOn) {
  const TempDir dir;
  const int fd = BindSocket(dir.File("s"), false);

  const absl::Status status =
      ExplainFailure({dir.File("s")}, absl::UnavailableError("raw"));

  EXPECT_THAT(std::string(status.message()), HasSubstr("nobody listens"));
  close(fd);
}

TEST(TargetTest, KeepsTheReasonWhenTheSocketIsFine) {
  const TempDir dir;
  const int fd = BindSocket(dir.File("s"), true);

  const absl::Status status =
      ExplainFailure({dir.File("s")}, absl::UnavailableError("raw"));

  EXPECT_EQ(status.message(), "no answer from unix:" + dir.File("s") + ": raw");
  close(fd);
}

}  // namespace
}  // namespace memtuned::ctl
