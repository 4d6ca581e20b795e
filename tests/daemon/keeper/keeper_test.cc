// SPDX-License-Identifier: Apache-2.0
// The keeper as a process: whom it serves, what it survives, when it ends.
#include "daemon/keeper/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>

#include "daemon/keeper/fd_message.h"
#include "tests/daemon/keeper/keeper_test_util.h"

namespace memtuned {
namespace {

class KeeperTest : public testing::Test {
 protected:
  // A keeper with pool "p", whose daemon is gone.
  void SetUp() override {
    Victim daemon([this] {
      auto* store = new FdStore(folder_.options());
      store->StorePool("p", {FileWith("metadata"), FileWith("frames")});
    });
    ASSERT_TRUE(daemon.ready());
    daemon.Kill();
    keeper_ = folder_.NewKeeper();
    ASSERT_GT(keeper_, 0);
  }
  void TearDown() override {
    if (Runs(keeper_)) kill(keeper_, SIGTERM);
  }

  FileDescriptor Connect() {
    FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, folder_.socket().c_str(),
                 sizeof(address.sun_path) - 1);
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                sizeof(address)) != 0) {
      fd.Reset();
    }
    return fd;
  }
  static bool IsClosed(const FileDescriptor& fd) {
    char byte;
    const timeval patience{5, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return recv(fd.get(), &byte, 1, 0) == 0;
  }

  KeeperFolder folder_;
  pid_t keeper_ = 0;
};

TEST_F(KeeperTest, HasASessionOfItsOwnAndHoldsNobodysStreams) {
  EXPECT_EQ(getsid(keeper_), keeper_);
  for (int fd = 0; fd < 3; ++fd) {
    EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(keeper_) +
                                            "/fd/" + std::to_string(fd)),
              "/dev/null");
  }
  // Streams, the listener and its file, metadata and frames.
  EXPECT_TRUE(Soon([&] { return folder_.FdsOfKeeper() == 7; }));
  struct stat file {};
  ASSERT_EQ(stat(folder_.socket().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(KeeperTest, GarbageClosesItsConnectionAndNothingElse) {
  KeeperMessage wrong_name, wrong_verb, no_fds, too_many, wrong_magic, reply;
  wrong_name.verb = KeeperVerb::kForget;
  wrong_name.pool = {'/', 'x'};
  wrong_verb.verb = static_cast<KeeperVerb>(99);
  no_fds.verb = KeeperVerb::kStore;
  no_fds.pool = {'p'};
  no_fds.nr_fds = 1;
  too_many.verb = KeeperVerb::kStore;
  too_many.pool = {'p'};
  too_many.nr_fds = 1u << 30;
  wrong_magic.magic = 7;
  reply.verb = KeeperVerb::kEnd;
  std::vector<std::string> garbage = {"x", std::string(72, '\xff'),
                                      std::string(4096, 'a')};
  for (const KeeperMessage& message :
       {wrong_name, wrong_verb, no_fds, too_many, wrong_magic, reply}) {
    garbage.emplace_back(reinterpret_cast<const char*>(&message),
                         sizeof(message));
  }

  for (const std::string& bytes : garbage) {
    const FileDescriptor fd = Connect();
    const int copies[] = {fd.get(), fd.get()};
    const bool with_fds = bytes.size() != sizeof(KeeperMessage) ||
                          bytes[8] == 99 || bytes[8] == 6;
    ASSERT_TRUE(SendWithFds(
        fd.get(), bytes.data(), bytes.size(),
        with_fds ? std::span<const int>(copies) : std::span<const int>()));
    EXPECT_TRUE(IsClosed(fd)) << bytes.size();
  }

  EXPECT_TRUE(Soon([&] { return folder_.FdsOfKeeper() == 7; }))
      << "descriptors that came along are closed";
  FdStore store(folder_.options());
  EXPECT_TRUE(store.Take("p").has_value());
}

TEST_F(KeeperTest, AHalfSentGroupChangesNothing) {
  const FileDescriptor fd = Connect();
  KeeperMessage message;
  message.verb = KeeperVerb::kStore;
  message.pool = {'p'};
  message.nr_fds = 3;
  const int first[] = {fd.get()};
  ASSERT_TRUE(SendWithFds(fd.get(), &message, sizeof(message), first));
  // The next part is another pool's.
  message.pool = {'q'};
  message.nr_before = 1;
  ASSERT_TRUE(SendWithFds(fd.get(), &message, sizeof(message), first));
  EXPECT_TRUE(IsClosed(fd));

  FdStore store(folder_.options());
  auto pool = store.Take("p");
  ASSERT_TRUE(pool.has_value());
  EXPECT_EQ(TextOf(pool->files[0]), "metadata");
}

TEST_F(KeeperTest, ManyWhoOnlyConnectDoNotKeepADaemonOut) {
  std::vector<FileDescriptor> idle;
  for (size_t i = 0; i < Keeper::kMaxConnections + 8; ++i) {
    idle.push_back(Connect());
  }
  EXPECT_TRUE(IsClosed(idle.back())) << "one too many";
  idle.clear();

  FdStore store(folder_.options());
  EXPECT_TRUE(store.Take("p").has_value());
}

TEST_F(KeeperTest, ServesItsOwnUserOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  // Whatever the file's mode lets through.
  chmod(folder_.socket().c_str(), 0666);
  chmod(std::filesystem::path(folder_.socket()).parent_path().c_str(), 0755);
  const pid_t stranger = fork();
  if (stranger == 0) {
    if (setuid(65534) != 0) _exit(2);
    const FileDescriptor fd = Connect();
    if (fd.get() < 0) _exit(3);
    SendKeeperMessage(fd.get(), KeeperVerb::kTake, FdKey{});
    KeeperMessage message;
    const ReceivedMessage got =
        ReceiveWithFds(fd.get(), &message, sizeof(message), 0);
    _exit(got.bytes <= 0 && got.fds.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(stranger, &status, 0);

  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(KeeperTest, EndsWhenNobodyCanReachItAnyMore) {
  unlink(folder_.socket().c_str());

  EXPECT_TRUE(Soon([&] { return !Runs(keeper_); }));
}

TEST_F(KeeperTest, WaitsForADaemonAsLongAsItCanBeReached) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));

  EXPECT_TRUE(Runs(keeper_));
}

TEST(KeeperProgramTest, RefusesToStartWithoutAListener) {
  const pid_t child = fork();
  if (child == 0) {
    close(kKeeperListener);
    close(2);
    execl(KEEPER_PROGRAM, KEEPER_PROGRAM, kKeeperFlag, "/tmp/none",
          static_cast<char*>(nullptr));
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);

  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

}  // namespace
}  // namespace memtuned
