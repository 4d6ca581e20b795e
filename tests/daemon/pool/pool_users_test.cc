// SPDX-License-Identifier: Apache-2.0
// Who may attach to a pool, who may only observe it, and what observers get:
// real processes of other users, which needs root.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/attach_message.h"
#include "daemon/pool/pool_subject.h"
#include "daemon/pool/socket_reach.h"
#include "memtuned/pool.h"
#include "tests/client/attach/child_process.h"
#include "tests/daemon/pool/pool_test_util.h"

namespace memtuned {
namespace {

using test::RunInChild;
using testing::HasSubstr;

constexpr uint32_t kWriter = 4001, kReader = 4002, kStranger = 65534;
constexpr uint32_t kGroup = 4444;

class PoolUsersTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
    PoolConfig config = SmallPool(dir_, 64u << 20);
    config.socket_mode = 0666;
    auto pool = PoolSubject::Create(config, TwoNodes(), &store_);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  Snapshot Now() { return *pool_->TakeSnapshot(false); }
  uint64_t Refused(const char* reason) {
    return Now().refused_attaches.at(reason);
  }

  TempDir dir_;
  FdStore store_;
  const std::string socket_ = dir_.path() + "/test.sock";
  std::unique_ptr<PoolSubject> pool_;
};

using ObserverTest = PoolUsersTest;

// What Become needs; says so where it is missing.
class OtherUsersTest : public PoolUsersTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "becomes other users: needs root";
    PoolUsersTest::SetUp();
  }

  struct Answer {
    memtuned_status attach, observe;
  };
  // What a process of that user is told.
  Answer AnswerTo(uint32_t uid, std::vector<gid_t> groups = {}) {
    const auto ask = [&](bool reads) {
      return static_cast<memtuned_status>(RunInChild([&] {
        if (!Become(uid, groups)) return 99;
        const auto pool =
            reads ? Pool::AttachToRead(socket_) : Pool::Attach(socket_);
        return static_cast<int>(pool ? MEMTUNED_OK : pool.error().status());
      }));
    };
    return {ask(false), ask(true)};
  }

  static bool Become(uint32_t uid, const std::vector<gid_t>& groups = {}) {
    return setgroups(groups.size(), groups.data()) == 0 &&
           setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
  }
};

TEST_F(ObserverTest, ReadsWhatOthersWriteAndIsNoneOfThem) {
  auto writer = Pool::Attach(socket_);
  ASSERT_TRUE(writer) << writer.error().message();
  auto* block = static_cast<char*>(writer->Allocate(1));
  ASSERT_NE(block, nullptr);
  std::strcpy(block, "before");
  const Snapshot before = Now();

  auto observer = Pool::AttachToRead(socket_);

  ASSERT_TRUE(observer) << observer.error().message();
  const auto* seen =
      static_cast<const char*>(observer->FromOffset(writer->ToOffset(block)));
  EXPECT_STREQ(seen, "before");
  std::strcpy(block, "after");
  EXPECT_STREQ(seen, "after");
  EXPECT_EQ(observer->name(), "test");
  EXPECT_FALSE(observer->attached());
  EXPECT_EQ(observer->process_id(), 0u);
  EXPECT_EQ(Now().processes.size(), 1u);
  EXPECT_EQ(Now().observers, 1u);
  EXPECT_EQ(before.observers, 0u);
}

TEST_F(ObserverTest, ChangesNothingWhateverItCalls) {
  auto writer = Pool::Attach(socket_);
  ASSERT_TRUE(writer) << writer.error().message();
  void* block = writer->Allocate(0);
  const uint64_t offset = writer->ToOffset(block);
  ASSERT_EQ(writer->Offer(offset, 0), MEMTUNED_OK);
  auto observer = Pool::AttachToRead(socket_);
  ASSERT_TRUE(observer) << observer.error().message();
  const Snapshot before = Now();

  void* const view = observer->FromOffset(offset);
  std::array<void*, 4> blocks{};
  for (int order : {0, 3, 10, 11, -1}) {
    EXPECT_EQ(observer->Allocate(order), nullptr);
    EXPECT_EQ(observer->AllocateBulk(order, blocks), 0u);
    EXPECT_EQ(observer->Free(view, order), MEMTUNED_NOT_ATTACHED);
  }
  blocks.fill(view);
  EXPECT_EQ(observer->FreeBulk(0, blocks), 0u);
  EXPECT_EQ(observer->Offer(offset, 0), MEMTUNED_NOT_ATTACHED);
  EXPECT_EQ(observer->Revoke(offset, 0), MEMTUNED_NOT_ATTACHED);
  EXPECT_EQ(observer->Adopt(offset, 0), MEMTUNED_NOT_ATTACHED);
  EXPECT_EQ(observer->FreeAdopted(offset, 0), MEMTUNED_NOT_ATTACHED);
  EXPECT_EQ(observer->SetLabel(view, 0, 1), MEMTUNED_NOT_ATTACHED);
  EXPECT_EQ(observer->SetMemoryPolicy(Pool::MemoryPolicy::kLocal).status(),
            MEMTUNED_NOT_ATTACHED);

  const Snapshot after = Now();
  EXPECT_EQ(after.allocation_failures, before.allocation_failures);
  EXPECT_EQ(after.refused_frees, before.refused_frees);
  EXPECT_EQ(writer->Free(block, 0), MEMTUNED_OK) << "the offer stood";
}

TEST_F(ObserverTest, DiesOfWritingThroughItsView) {
  const int code = RunInChild([&] {
    auto observer = Pool::AttachToRead(socket_);
    CHILD_CHECK(observer);
    auto* frame = static_cast<volatile char*>(observer->FromOffset(0));
    static_cast<void>(*frame);
    *frame = 1;
    return 0;
  });

  EXPECT_EQ(code, 128 + SIGSEGV);
}

TEST_F(ObserverTest, LeavesNothingBehindHoweverItGoes) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(RunInChild([&] {
                auto observer = Pool::AttachToRead(socket_);
                CHILD_CHECK(observer);
                if (round == 0) kill(getpid(), SIGKILL);
                if (round == 1) {
                  Pool gone = *std::move(observer);
                }
                return 0;
              }),
              round == 0 ? 128 + SIGKILL : 0);
  }

  EXPECT_TRUE(Eventually([&] { return Now().observers == 0; }));
  EXPECT_TRUE(Now().processes.empty());
}

TEST_F(ObserverTest, OneUserHasOnlySoMany) {
  AttachRequest request;
  request.layout_version = kLayoutVersion;
  request.abi_hash = AbiHash();
  request.flags = kAttachToRead;
  std::vector<FileDescriptor> connections;
  const auto observe = [&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connections.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const int fd = connections.back().get();
    AttachReply reply;
    reply.status = AttachStatus::kBadRequest;
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_GT(send(fd, &request, sizeof(request), 0), 0);
    EXPECT_GT(recv(fd, &reply, sizeof(reply), 0), 0);
    return reply.status;
  };
  for (int i = 0; i < 256; ++i) ASSERT_EQ(observe(), AttachStatus::kOk) << i;

  EXPECT_EQ(observe(), AttachStatus::kFull);
  EXPECT_EQ(Refused("full"), 1u);
  EXPECT_EQ(Now().observers, 256u);
  EXPECT_TRUE(Pool::Attach(socket_)) << "others are not kept out";
  connections.clear();
  EXPECT_TRUE(Eventually([&] { return Now().observers == 0; }));
  EXPECT_EQ(observe(), AttachStatus::kOk);
}

// Every way to a writable descriptor or mapping that another user has.
TEST_F(OtherUsersTest, AViewOfAnotherUserStaysAView) {
  const int code = RunInChild([&] {
    // The descriptors of the pool itself, which is in this process.
    CHILD_CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
    CHILD_CHECK(Become(kStranger));
    auto observer = Pool::AttachToRead(socket_);
    CHILD_CHECK(observer);
    int files = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string target =
          std::filesystem::read_symlink(entry.path(), gone);
      if (target.find("/memfd:memtuned:test") != 0) continue;
      ++files;
      const int fd = std::stoi(entry.path().filename());
      for (int flags : {O_RDWR, O_WRONLY, O_RDWR | O_TRUNC}) {
        CHILD_CHECK(open(entry.path().c_str(), flags) < 0 && errno == EACCES);
      }
      CHILD_CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                       0) == MAP_FAILED &&
                  errno == EACCES);
      void* view = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
      CHILD_CHECK(view != MAP_FAILED);
      CHILD_CHECK(mprotect(view, 4096, PROT_READ | PROT_WRITE) != 0 &&
                  errno == EACCES);
      CHILD_CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EBADF);
      CHILD_CHECK(ftruncate(fd, 0) != 0 && errno == EINVAL);
      CHILD_CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                            4096) != 0 &&
                  errno == EBADF);
      CHILD_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EPERM);
      CHILD_CHECK(fchmod(fd, 0666) != 0 && errno == EPERM);
    }
    CHILD_CHECK(files == 3);  // metadata, and frames of two nodes
    return 0;
  });

  EXPECT_EQ(code, 0);
}

TEST_F(OtherUsersTest, WithoutListsWhoeverConnectsMayAttach) {
  const Answer answer = AnswerTo(kStranger);

  EXPECT_EQ(answer.attach, MEMTUNED_OK);
  EXPECT_EQ(answer.observe, MEMTUNED_OK);
}

TEST_F(OtherUsersTest, TheListsDecideByUserGroupAndSupplementaryGroup) {
  pool_->SetUsers({.attach = {.users = {kWriter}, .groups = {kGroup}},
                   .observe = {.users = {kReader}}});

  for (const Answer& all : {AnswerTo(0), AnswerTo(kWriter), AnswerTo(kGroup),
                            AnswerTo(kStranger, {1, 2, kGroup})}) {
    EXPECT_EQ(all.attach, MEMTUNED_OK);
    EXPECT_EQ(all.observe, MEMTUNED_OK);
  }
  const Answer reader = AnswerTo(kReader), stranger = AnswerTo(kStranger, {1});
  EXPECT_EQ(reader.attach, MEMTUNED_PERMISSION_DENIED);
  EXPECT_EQ(reader.observe, MEMTUNED_OK);
  EXPECT_EQ(stranger.attach, MEMTUNED_PERMISSION_DENIED);
  EXPECT_EQ(stranger.observe, MEMTUNED_PERMISSION_DENIED);
  EXPECT_EQ(Refused("denied"), 3u);
}

TEST_F(OtherUsersTest, ARefusalNamesUserPoolAndWhatIsNeeded) {
  pool_->SetUsers(
      {.attach = {.users = {kWriter}}, .observe = {.users = {kReader}}});
  const auto message_to = [&](uint32_t uid, bool reads) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(RunInChild([&] {
                CHILD_CHECK(Become(uid));
                const auto pool =
                    reads ? Pool::AttachToRead(socket_) : Pool::Attach(socket_);
                const std::string text = pool.error().message();
                CHILD_CHECK(write(ends[1], text.data(), text.size()) > 0);
                return 0;
              }),
              0);
    close(ends[1]);
    std::array<char, 1000> text{};
    EXPECT_GT(read(ends[0], text.data(), text.size() - 1), 0);
    close(ends[0]);
    return std::string(text.data());
  };

  EXPECT_THAT(message_to(kStranger, false),
              HasSubstr("uid 65534 may not attach to pool test: its list "
                        "\"attach\" has to name that user or a group of it"));
  EXPECT_THAT(message_to(kStranger, true),
              HasSubstr("uid 65534 may not observe pool test: its list "
                        "\"attach\" or \"observe\" has to name"));
  EXPECT_THAT(message_to(kReader, false),
              HasSubstr("attaching to read only is allowed"));
}

TEST_F(OtherUsersTest, AChangedListIsForThoseWhoCome) {
  const test::ChildProcess attached([&] {
    CHILD_CHECK(Become(kStranger));
    auto pool = Pool::Attach(socket_);
    CHILD_CHECK(pool);
    for (int i = 0; i < 20000; ++i) {
      void* block = pool->Allocate(0);
      CHILD_CHECK(block != nullptr && pool->Free(block, 0) == MEMTUNED_OK);
      usleep(1000);
    }
    return 0;
  });
  ASSERT_TRUE(Eventually([&] { return Now().processes.size() == 1; }));

  pool_->SetUsers({.attach = {.users = {kWriter}}});

  EXPECT_EQ(AnswerTo(kStranger).attach, MEMTUNED_PERMISSION_DENIED);
  EXPECT_TRUE(Eventually([&] { return Now().processes.size() == 1; }));
  const uint64_t operations = Now().processes[0].operations;
  EXPECT_TRUE(Eventually([&] {
    return Now().processes.at(0).operations > operations;
  })) << "who is attached goes on";
  pool_->SetUsers({});
  EXPECT_EQ(AnswerTo(kStranger).attach, MEMTUNED_OK);
  kill(attached.pid(), SIGKILL);
}

TEST(SocketReachTest, NamesThoseWhomTheModeKeepsOut) {
  struct stat socket {};
  socket.st_uid = 10;
  socket.st_gid = 20;
  const PoolUsers users{.attach = {.users = {0, 10, kWriter}, .groups = {20}},
                        .observe = {.everyone = true, .groups = {21}}};

  socket.st_mode = 0666;
  EXPECT_EQ(KeptOutBySocket(users, socket), "");
  socket.st_mode = 0660;
  EXPECT_EQ(KeptOutBySocket(users, socket), "uid 4001, gid 21");
  socket.st_mode = 0600;
  EXPECT_EQ(KeptOutBySocket(users, socket), "uid 4001, gid 20, gid 21");
  EXPECT_EQ(KeptOutBySocket({}, socket), "");
}

}  // namespace
}  // namespace memtuned
