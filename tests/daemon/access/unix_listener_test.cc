// SPDX-License-Identifier: Apache-2.0
// Real sockets; callers of other users are child processes.
#include "daemon/access/unix_listener.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "daemon/access/caller.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

// Returns: the descriptor, or minus errno.
int Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
      0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  return -error;
}

class UnixListenerTest : public testing::Test {
 protected:
  UnixListenerTest() {
    char folder[] = "/tmp/memtuned-listen-XXXXXX";
    folder_ = mkdtemp(folder);
    chmod(folder, 0755);
    path_ = folder_ + "/api.sock";
  }
  ~UnixListenerTest() override { std::filesystem::remove_all(folder_); }

  // Connects in a child with these ids. Returns: its exit code, 0 or errno.
  int ConnectAs(uid_t uid, gid_t gid, const std::vector<gid_t>& groups) {
    const pid_t pid = fork();
    if (pid == 0) {
      const bool changed = setgroups(groups.size(), groups.data()) == 0 &&
                           setgid(gid) == 0 && setuid(uid) == 0;
      const int fd = changed ? Connect(path_) : -EPERM;
      _exit(fd >= 0 ? 0 : -fd);
    }
    child_ = pid;
    int status = 0;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  }

  std::string folder_, path_;
  pid_t child_ = -1;
};

TEST_F(UnixListenerTest, TellsWhoConnectsEvenWhenTheyAreGone) {
  if (geteuid() != 0) GTEST_SKIP() << "becomes other users: needs root";
  std::promise<int> connected;
  auto listener = UnixListener::Start({.path = path_, .mode = 0666},
                                      [&](int fd) { connected.set_value(fd); });
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::vector<gid_t> many(100);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = 5000 + static_cast<gid_t>(i);
  }

  ASSERT_EQ(ConnectAs(4001, 4002, many), 0);
  const int fd = connected.get_future().get();
  const auto caller = UnixCaller(fd);

  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->kind, Caller::Kind::kUnix);
  EXPECT_EQ(caller->uid, 4001u);
  EXPECT_EQ(caller->gid, 4002u);
  EXPECT_EQ(caller->pid, child_);
  EXPECT_THAT(caller->groups, ::testing::UnorderedElementsAreArray(many));
  EXPECT_EQ(caller->Text(), "uid:4001");
  close(fd);
}

TEST_F(UnixListenerTest, ModeAndGroupDecideWhoMayConnect) {
  if (geteuid() != 0) GTEST_SKIP() << "becomes other users: needs root";
  auto listener = UnixListener::Start(
      {.path = path_, .mode = 0660, .gid = 4444}, [](int fd) { close(fd); });
  ASSERT_TRUE(listener.ok()) << listener.status();

  EXPECT_EQ((*listener)->gid(), 4444u);
  EXPECT_EQ(ConnectAs(4001, 4444, {}), 0);
  EXPECT_EQ(ConnectAs(4001, 4001, {4444}), 0);
  EXPECT_EQ(ConnectAs(4001, 4001, {}), EACCES);
}

TEST_F(UnixListenerTest, LeavesNothingBehind) {
  {
    auto listener =
        UnixListener::Start({.path = path_}, [](int fd) { close(fd); });
    ASSERT_TRUE(listener.ok());
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Connect(path_), -ENOENT);
}

TEST_F(UnixListenerTest, DoesNotTakeASocketThatIsThere) {
  auto first = UnixListener::Start({.path = path_}, [](int fd) { close(fd); });
  ASSERT_TRUE(first.ok());

  const auto second =
      UnixListener::Start({.path = path_}, [](int fd) { close(fd); });

  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(path_));
  const int fd = Connect(path_);
  EXPECT_GE(fd, 0);
  close(fd);
}

TEST_F(UnixListenerTest, AcceptsAgainAfterDescriptorsRanOut) {
  std::promise<void> connected;
  auto listener = UnixListener::Start({.path = path_}, [&](int fd) {
    close(fd);
    connected.set_value();
  });
  ASSERT_TRUE(listener.ok());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  rlimit none = old;
  none.rlim_cur = static_cast<rlim_t>(fd) + 1;
  setrlimit(RLIMIT_NOFILE, &none);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));

  setrlimit(RLIMIT_NOFILE, &old);

  EXPECT_EQ(connected.get_future().wait_for(std::chrono::seconds(5)),
            std::future_status::ready);
  close(fd);
}

TEST(CallerTest, KnowsUnixSocketsOnly) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const int tcp = socket(AF_INET, SOCK_STREAM, 0);

  EXPECT_EQ(UnixCaller(-1).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(UnixCaller(pipes[0]).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(UnixCaller(tcp).status().code(),
            absl::StatusCode::kUnauthenticated);
  for (const int fd : {pipes[0], pipes[1], tcp}) close(fd);
}

TEST(CallerTest, CannotBeNamedLikeAUser) {
  Caller caller;
  caller.kind = Caller::Kind::kTls;
  caller.identity = "uid:0";

  EXPECT_EQ(caller.Text(), "tls:uid:0");
}

}  // namespace
}  // namespace memtuned
