// SPDX-License-Identifier: Apache-2.0
// Attaching: what works, and every way in which it cannot, in words.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "core/attach_message.h"
#include "core/segment.h"
#include "memtuned/memtuned.h"
#include "memtuned/pool.h"
#include "tests/client/attach/child_process.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ptrdiff_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

// Tries to attach and expects that it leaves no descriptor open.
memtuned_error AttachFails(const std::string& path, uint32_t timeout_ms = 0) {
  const ptrdiff_t before = OpenFiles();
  memtuned_attach_options options = {};
  options.timeout_ms = timeout_ms;
  memtuned_error error = {};
  auto* pool = reinterpret_cast<memtuned_pool*>(1);
  EXPECT_NE(memtuned_attach(path.c_str(), &options, &pool, &error),
            MEMTUNED_OK);
  EXPECT_EQ(pool, nullptr);
  // A server in this process may still hold its end for a moment.
  for (int i = 0; OpenFiles() != before && i < 200; ++i) usleep(5000);
  EXPECT_EQ(OpenFiles(), before) << error.message;
  return error;
}

TEST(AttachTest, AttachesAllocatesAndDetaches) {
  AttachTestServer server;
  const ptrdiff_t before = OpenFiles();
  {
    auto pool = Pool::Attach(server.path());
    ASSERT_TRUE(pool) << pool.error().message();
    EXPECT_EQ(server.AttachedProcesses(), 1);
    EXPECT_EQ(pool->name(), "test");
    EXPECT_EQ(pool->bytes(), 16384u * 4096);
    EXPECT_NE(pool->process_id(), 0u);

    void* block = pool->Allocate(3);

    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (4096 << 3), 0u);
    std::memset(block, 0xa5, 4096 << 3);
    EXPECT_EQ(pool->Free(block, 3), MEMTUNED_OK);
    EXPECT_EQ(pool->Free(block, 3), MEMTUNED_NOT_ALLOCATED);
  }
  for (int i = 0; server.AttachedProcesses() != 0 && i < 1000; ++i) {
    usleep(2000);
  }
  EXPECT_EQ(server.AttachedProcesses(), 0);
  EXPECT_EQ(server.UsedThreadSlots(), 0);
  EXPECT_EQ(OpenFiles(), before);
}

TEST(AttachTest, TheDaemonTakesBackWhatADetachedProcessHeld) {
  AttachTestServer server;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);
  ASSERT_NE(pool->Allocate(0), nullptr);
  ASSERT_NE(pool->Allocate(10), nullptr);
  EXPECT_EQ(server.AllocatedPages(), 1025u);

  { Pool gone = *std::move(pool); }

  for (int i = 0; server.AttachedProcesses() != 0 && i < 1000; ++i) {
    usleep(2000);
  }
  EXPECT_EQ(server.AllocatedPages(), 0u);
}

TEST(AttachTest, TwoAttachmentsOfOneProcessAreTwoOwners) {
  AttachTestServer server;
  auto one = Pool::Attach(server.path());
  auto two = Pool::Attach(server.path());
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->process_id(), two->process_id());

  void* block = one->Allocate(0);

  EXPECT_EQ(two->Free(two->FromOffset(one->ToOffset(block)), 0),
            MEMTUNED_FOREIGN);
  EXPECT_EQ(one->Free(block, 0), MEMTUNED_OK);
}

TEST(AttachTest, ReceivesMoreDescriptorsThanOneMessageCarries) {
  AttachTestServer server({.nr_nodes = 256, .pages_a_node = 2048});
  const ptrdiff_t before = OpenFiles();
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool) << pool.error().message();
  // The connection on both sides, metadata and 256 nodes.
  EXPECT_GE(OpenFiles() - before, 258);
  const int last = 255;
  ASSERT_TRUE(
      pool->SetMemoryPolicy(Pool::MemoryPolicy::kBind, std::span(&last, 1))
          .ok());

  auto* block = static_cast<char*>(pool->Allocate(0));

  ASSERT_NE(block, nullptr);
  EXPECT_GE(pool->ToOffset(block), uint64_t{255} << 27);
  block[0] = 'x';
  EXPECT_EQ(pool->Free(block, 0), MEMTUNED_OK);
}

TEST(AttachTest, SaysThatTheSocketDoesNotExist) {
  const memtuned_error error = AttachFails("/nonexistent/pools/a.sock");

  EXPECT_EQ(error.status, MEMTUNED_UNAVAILABLE);
  EXPECT_THAT(error.message, AllOf(HasSubstr("/nonexistent/pools/a.sock"),
                                   HasSubstr("does not exist")));
}

TEST(AttachTest, SaysThatNobodyListens) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/pool.sock";
  close(ListenOn(path, SOCK_SEQPACKET));

  const memtuned_error error = AttachFails(path);

  EXPECT_EQ(error.status, MEMTUNED_UNAVAILABLE);
  EXPECT_THAT(error.message, HasSubstr("nobody listens on socket " + path));
}

TEST(AttachTest, SaysThatAFileIsNoSocket) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  close(open(path.c_str(), O_CREAT | O_WRONLY, 0600));

  const memtuned_error error = AttachFails(path);

  EXPECT_EQ(error.status, MEMTUNED_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("not a socket"));
}

TEST(AttachTest, SaysThatASocketIsOfAnotherType) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/grpc.sock";
  const int listener = ListenOn(path, SOCK_STREAM);

  const memtuned_error error = AttachFails(path);

  EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY);
  EXPECT_THAT(error.message, HasSubstr("socket of another type"));
  close(listener);
}

TEST(AttachTest, RefusesPathsThatNoSocketCanHave) {
  EXPECT_EQ(AttachFails("").status, MEMTUNED_INVALID_ARGUMENT);
  const memtuned_error error = AttachFails("/" + std::string(200, 'a'));
  EXPECT_EQ(error.status, MEMTUNED_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("201 bytes; allowed 1 to 107"));
}

TEST(AttachTest, RefusesNullAndReservedFields) {
  memtuned_pool* pool = nullptr;
  memtuned_error error;
  EXPECT_EQ(memtuned_attach(nullptr, nullptr, &pool, &error),
            MEMTUNED_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("socket_path is NULL"));
  EXPECT_EQ(memtuned_attach("/x", nullptr, nullptr, nullptr),
            MEMTUNED_INVALID_ARGUMENT);
  memtuned_attach_options options = {};
  options.reserved[5] = 7;
  EXPECT_EQ(memtuned_attach("/x", &options, &pool, &error),
            MEMTUNED_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("is 7; it must be 0"));
  EXPECT_FALSE(Pool::Attach("/x", std::chrono::milliseconds(0)).ok());
}

// Runs as a user other than root, to whom the socket's mode means something.
memtuned_error AttachAsNobody(const std::string& path) {
  int channel[2];
  EXPECT_EQ(pipe(channel), 0);
  EXPECT_EQ(
      RunInChild([&] {
        if (geteuid() == 0) {
          CHILD_CHECK(setresgid(65534, 65534, 65534) == 0);
          CHILD_CHECK(setresuid(65534, 65534, 65534) == 0);
        }
        memtuned_pool* pool;
        memtuned_error error = {};
        CHILD_CHECK(memtuned_attach(path.c_str(), nullptr, &pool, &error) !=
                    MEMTUNED_OK);
        CHILD_CHECK(write(channel[1], &error, sizeof(error)) == sizeof(error));
        return 0;
      }),
      0);
  memtuned_error error = {};
  EXPECT_EQ(read(channel[0], &error, sizeof(error)), sizeof(error));
  close(channel[0]);
  close(channel[1]);
  return error;
}

TEST(AttachTest, SaysWhoMayConnectWhenAccessIsDenied) {
  AttachTestServer server;
  ASSERT_EQ(chmod(server.path().c_str(), 0400), 0);

  const memtuned_error error = AttachAsNobody(server.path());

  const std::string uid = std::to_string(geteuid());
  const std::string my_uid = geteuid() == 0 ? "65534" : uid;
  EXPECT_EQ(error.status, MEMTUNED_PERMISSION_DENIED);
  EXPECT_THAT(
      error.message,
      AllOf(HasSubstr("permission denied on socket " + server.path()),
            HasSubstr("you are uid " + my_uid),
            HasSubstr("it belongs to uid " + uid), HasSubstr("mode 0400")));
}

TEST(AttachTest, NamesTheFolderThatDeniesAccess) {
  AttachTestServer server;
  const std::string folder = std::filesystem::path(server.path()).parent_path();
  ASSERT_EQ(chmod(folder.c_str(), 0600), 0);

  const memtuned_error error = AttachAsNobody(server.path());

  EXPECT_EQ(error.status, MEMTUNED_PERMISSION_DENIED);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("folder " + folder), HasSubstr("mode 0600")));
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
}

TEST(AttachTest, SaysThatThePoolIsFull) {
  AttachTestServer server({.nr_processes = 2});
  auto one = Pool::Attach(server.path());
  auto two = Pool::Attach(server.path());
  ASSERT_TRUE(one && two);

  const memtuned_error error = AttachFails(server.path());

  EXPECT_EQ(error.status, MEMTUNED_POOL_FULL);
  EXPECT_THAT(error.message, AllOf(HasSubstr(server.path()),
                                   HasSubstr("all 2 process slots")));
}

TEST(AttachTest, GivesUpAtTheDeadlineWhenNobodyAccepts) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/pool.sock";
  const int listener = ListenOn(path, SOCK_SEQPACKET, 0);
  memtuned_error error = {};
  const auto start = std::chrono::steady_clock::now();

  // The first waits for an answer, a later one for room in the queue.
  error = AttachFails(path, 50);
  EXPECT_EQ(error.status, MEMTUNED_DEADLINE_EXCEEDED);
  EXPECT_THAT(error.message, HasSubstr("50 ms"));
  error = AttachFails(path, 50);
  EXPECT_EQ(error.status, MEMTUNED_DEADLINE_EXCEEDED);
  EXPECT_THAT(error.message, AllOf(HasSubstr("queue"), HasSubstr("50 ms")));

  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  close(listener);
}

// What a daemon that is broken, old or none at all may answer.
class BadReplyTest : public ::testing::Test {
 protected:
  static AttachReply GoodReply() {
    AttachReply reply;
    reply.layout_version = kLayoutVersion;
    reply.abi_hash = AbiHash();
    reply.owner = 1 << 10;
    reply.nr_frame_fds = 1;
    return reply;
  }
  // Attaches to a server that reads the request, then runs `answer`.
  static memtuned_error Answered(std::function<void(int)> answer,
                                 uint32_t timeout_ms = 0) {
    ScriptedServer server([&answer](int connection) {
      AttachRequest request;
      recv(connection, &request, sizeof(request), 0);
      answer(connection);
    });
    return AttachFails(server.path(), timeout_ms);
  }
  static memtuned_error AnsweredBy(const AttachReply& reply) {
    return Answered(
        [&](int fd) { SendWithFds(fd, &reply, sizeof(reply), {}); });
  }
};

TEST_F(BadReplyTest, NothingAtAll) {
  EXPECT_EQ(Answered([](int) {}).status, MEMTUNED_UNAVAILABLE);
}

TEST_F(BadReplyTest, SilenceUntilTheDeadline) {
  const memtuned_error error = Answered(
      [](int fd) {
        char byte;
        recv(fd, &byte, 1, 0);
      },
      60);

  EXPECT_EQ(error.status, MEMTUNED_DEADLINE_EXCEEDED);
  EXPECT_THAT(error.message, HasSubstr("within 60 ms"));
}

TEST_F(BadReplyTest, TooShortOrTooLong) {
  const AttachReply good = GoodReply();
  for (size_t size : {size_t{1}, size_t{255}, size_t{257}, size_t{4096}}) {
    std::string bytes(reinterpret_cast<const char*>(&good), sizeof(good));
    bytes.resize(size, '\0');
    const memtuned_error error = Answered(
        [&](int fd) { SendWithFds(fd, bytes.data(), bytes.size(), {}); });
    EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY) << size;
    EXPECT_THAT(error.message, HasSubstr("expected 256"));
  }
}

TEST_F(BadReplyTest, Garbage) {
  const std::string bytes(sizeof(AttachReply), '\x5a');
  const memtuned_error error = Answered(
      [&](int fd) { SendWithFds(fd, bytes.data(), bytes.size(), {}); });
  EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY);
  EXPECT_THAT(error.message, HasSubstr("magic 5a5a5a5a"));
}

TEST_F(BadReplyTest, GarbageWithDescriptorsLeaksNone) {
  const std::string bytes(sizeof(AttachReply), '\x5a');
  const memtuned_error error = Answered([&](int fd) {
    SendWithFds(fd, bytes.data(), bytes.size(), {0, 1, 2});
  });
  EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY);
}

TEST_F(BadReplyTest, AnotherLayout) {
  AttachReply reply = GoodReply();
  reply.layout_version = kLayoutVersion + 1;
  const memtuned_error by_version = AnsweredBy(reply);
  EXPECT_EQ(by_version.status, MEMTUNED_LAYOUT_DIFFERS);
  EXPECT_THAT(by_version.message,
              HasSubstr("layout " + std::to_string(kLayoutVersion + 1)));

  reply = GoodReply();
  reply.abi_hash ^= 1;
  EXPECT_EQ(AnsweredBy(reply).status, MEMTUNED_LAYOUT_DIFFERS);
}

TEST_F(BadReplyTest, RefusalsSayWhatTheDaemonSays) {
  const struct {
    AttachStatus status;
    memtuned_status expected;
  } cases[] = {
      {AttachStatus::kBadRequest, MEMTUNED_LAYOUT_DIFFERS},
      {AttachStatus::kLayoutDiffers, MEMTUNED_LAYOUT_DIFFERS},
      {AttachStatus::kDenied, MEMTUNED_PERMISSION_DENIED},
      {AttachStatus::kFull, MEMTUNED_POOL_FULL},
      {AttachStatus::kShuttingDown, MEMTUNED_UNAVAILABLE},
      {static_cast<AttachStatus>(77), MEMTUNED_BAD_REPLY},
  };
  for (const auto& c : cases) {
    AttachReply reply = GoodReply();
    reply.status = c.status;
    reply.message.fill('y');  // no end in it
    const memtuned_error error = AnsweredBy(reply);
    EXPECT_EQ(error.status, c.expected) << error.message;
    if (c.expected != MEMTUNED_BAD_REPLY) {
      EXPECT_THAT(error.message, HasSubstr(std::string(224, 'y')));
    }
  }
}

TEST_F(BadReplyTest, DescriptorsMissingOrTooMany) {
  AttachReply reply = GoodReply();
  EXPECT_EQ(AnsweredBy(reply).status, MEMTUNED_BAD_REPLY);  // none came

  reply.nr_frame_fds = 257;
  EXPECT_THAT(AnsweredBy(reply).message, HasSubstr("allowed 1 to 256"));
  reply.nr_frame_fds = 0;
  EXPECT_EQ(AnsweredBy(reply).status, MEMTUNED_BAD_REPLY);

  reply.nr_frame_fds = 1;
  const memtuned_error many = Answered([&](int fd) {
    SendWithFds(fd, &reply, sizeof(reply), {0, 1, 2, 0, 1});
  });
  EXPECT_EQ(many.status, MEMTUNED_BAD_REPLY);
  EXPECT_THAT(many.message, HasSubstr("5 descriptors; expected 2"));
}

TEST_F(BadReplyTest, TheSecondMessageOfDescriptorsIsWrong) {
  AttachReply reply = GoodReply();
  reply.nr_frame_fds = 254;
  const std::vector<int> full(kFdsPerMessage, 0);
  const auto then = [&](const char* bytes, size_t size,
                        const std::vector<int>& fds) {
    return Answered([&, fds](int fd) {
      SendWithFds(fd, &reply, sizeof(reply), full);
      if (size != 0) SendWithFds(fd, bytes, size, fds);
    });
  };

  EXPECT_EQ(then("", 0, {}).status, MEMTUNED_UNAVAILABLE);
  EXPECT_EQ(then("ab", 2, {0, 0, 0, 0, 0}).status, MEMTUNED_BAD_REPLY);
  EXPECT_EQ(then("a", 1, {}).status, MEMTUNED_BAD_REPLY);
  EXPECT_EQ(then("a", 1, {0, 0, 0}).status, MEMTUNED_BAD_REPLY);
  EXPECT_EQ(then("a", 1, {0, 0, 0, 0, 0, 0}).status, MEMTUNED_BAD_REPLY);
}

TEST_F(BadReplyTest, DescriptorsThatAreNoSegment) {
  const AttachReply reply = GoodReply();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const memtuned_error error = Answered([&](int fd) {
    SendWithFds(fd, &reply, sizeof(reply), {null, null});
  });
  EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY);
  EXPECT_THAT(error.message, HasSubstr("too few for a header"));
  close(null);
}

TEST_F(BadReplyTest, FrameFilesThatAreTooShortAreSeenBeforeTheyAreTouched) {
  AttachTestServer pool;
  const int empty = memfd_create("short", MFD_CLOEXEC);
  const AttachReply reply = GoodReply();
  const memtuned_error error = Answered([&](int fd) {
    SendWithFds(fd, &reply, sizeof(reply),
                {pool.segment().metadata_fd(), empty});
  });
  EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY);
  EXPECT_THAT(error.message, HasSubstr("frame file 0"));
  close(empty);
}

TEST_F(BadReplyTest, AProcessSlotThatThePoolDoesNotHave) {
  AttachTestServer pool;
  AttachReply reply = GoodReply();
  reply.owner = 0xfffffff0;
  const memtuned_error error = Answered([&](int fd) {
    SendWithFds(fd, &reply, sizeof(reply),
                {pool.segment().metadata_fd(), pool.segment().frame_fds()[0]});
  });
  EXPECT_EQ(error.status, MEMTUNED_BAD_REPLY);
  EXPECT_THAT(error.message, HasSubstr("process slot"));
}

TEST(AttachTest, SaysThatTheLimitOfOpenFilesIsTooLow) {
  AttachTestServer server({.nr_nodes = 16, .pages_a_node = 2048});

  const int code = RunInChild([&] {
    const auto low = static_cast<rlim_t>(OpenFiles() + 6);
    const rlimit limit = {low, low};
    CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    const ptrdiff_t before = OpenFiles();
    memtuned_pool* pool;
    memtuned_error error;
    CHILD_CHECK(memtuned_attach(server.path().c_str(), nullptr, &pool,
                                &error) == MEMTUNED_NO_RESOURCES);
    CHILD_CHECK(std::string(error.message).find("RLIMIT_NOFILE") !=
                std::string::npos);
    CHILD_CHECK(OpenFiles() == before);
    return 0;
  });

  EXPECT_EQ(code, 0);
}

TEST(AttachTest, EveryDescriptorClosesOnExec) {
  AttachTestServer server;
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool);

  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), gone);
    if (target.find("memtuned") == std::string::npos &&
        target.find("socket:") == std::string::npos) {
      continue;
    }
    const int fd = std::stoi(entry.path().filename());
    EXPECT_TRUE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) << target;
  }
}

}  // namespace
}  // namespace memtuned::test
