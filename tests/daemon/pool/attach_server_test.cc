// SPDX-License-Identifier: Apache-2.0
// The daemon's end of attaching, with libmemtuned or a raw socket as the
// other, and real processes that end in different ways.
#include "daemon/pool/attach_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "core/attach_message.h"
#include "daemon/pool/pool_subject.h"
#include "memtuned/memtuned.h"
#include "tests/daemon/pool/pool_test_util.h"

namespace memtuned {
namespace {

class AttachServerTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = InitialisedPool(dir_, &store_);
    ASSERT_NE(pool_, nullptr);
  }

  Snapshot Now() { return *pool_->TakeSnapshot(true); }
  bool AllBack() {
    const Snapshot snapshot = Now();
    uint64_t free_pages = 0, managed = 0;
    for (const ZoneSnapshot& zone : snapshot.zones) {
      free_pages += zone.free_pages + zone.pageset_pages_sum + zone.depot_pages;
      managed += zone.managed_pages;
    }
    return snapshot.processes.empty() && free_pages == managed;
  }

  // A process that attaches, takes 1,000 pages and then does `end`.
  template <typename End>
  pid_t Child(End end) {
    const pid_t child = fork();
    if (child != 0) return child;
    memtuned_pool* attached = nullptr;
    if (memtuned_attach(socket_.c_str(), nullptr, &attached, nullptr) != 0) {
      _exit(9);
    }
    for (int i = 0; i < 1000; ++i) {
      if (memtuned_allocate(attached, 0) == nullptr) _exit(8);
    }
    end(attached);
    _exit(0);
  }

  int RawConnection() {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_.c_str(),
                 sizeof(address.sun_path) - 1);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  TempDir dir_;
  FdStore store_;
  const std::string socket_ = dir_.path() + "/test.sock";
  std::unique_ptr<PoolSubject> pool_;
};

TEST_F(AttachServerTest, AProcessIsListedWithWhatItHolds) {
  const pid_t child = Child([](memtuned_pool*) { pause(); });

  const bool listed = Eventually([&] {
    const Snapshot now = Now();
    return now.processes.size() == 1 && now.processes[0].pid == child &&
           now.processes[0].allocated_pages == 1000;
  });
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_TRUE(listed);
  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
}

TEST_F(AttachServerTest, WhateverWayAProcessEndsItsPagesComeBack) {
  const pid_t exits = Child([](memtuned_pool*) {});
  const pid_t detaches =
      Child([](memtuned_pool* attached) { memtuned_detach(attached); });
  const pid_t execs = Child([](memtuned_pool*) {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
  });
  const pid_t aborts = Child([](memtuned_pool*) {
    signal(SIGABRT, SIG_DFL);
    abort();
  });

  for (pid_t child : {exits, detaches, execs, aborts}) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
  }

  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
}

// A daemon of its own that closes whatever is open, as some do.
TEST_F(AttachServerTest, WhoClosesItsConnectionAndGoesOnKeepsItsPages) {
  const pid_t child = Child([](memtuned_pool* attached) {
    syscall(SYS_close_range, 3, ~0u, 0);
    for (;;) {
      void* block = memtuned_allocate(attached, 0);
      if (memtuned_free(attached, block, 0) != MEMTUNED_OK) _exit(7);
      usleep(1000);
    }
  });
  ASSERT_TRUE(Eventually([&] { return Now().processes.size() == 1; }));

  sleep(2);
  const Snapshot now = Now();
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);

  ASSERT_EQ(now.processes.size(), 1u);
  EXPECT_GE(now.processes[0].allocated_pages, 1000u);
  EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
}

TEST_F(AttachServerTest, GarbageIsRefusedAndTheServerGoesOn) {
  for (const std::string& bytes :
       {std::string("x"), std::string(sizeof(AttachRequest), '\xff'),
        std::string(4096, 'a')}) {
    const int fd = RawConnection();
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    AttachReply reply;
    ASSERT_EQ(recv(fd, &reply, sizeof(reply), 0),
              static_cast<ssize_t>(sizeof(reply)));
    EXPECT_EQ(reply.status, AttachStatus::kBadRequest);
    EXPECT_EQ(recv(fd, &reply, sizeof(reply), 0), 0) << "closed after it";
    close(fd);
  }

  const pid_t child = Child([](memtuned_pool*) {});
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(AttachServerTest, AnotherLayoutIsToldBothLayouts) {
  AttachRequest request;
  request.layout_version = kLayoutVersion;
  request.abi_hash = AbiHash() + 1;
  const int fd = RawConnection();
  ASSERT_EQ(send(fd, &request, sizeof(request), 0),
            static_cast<ssize_t>(sizeof(request)));

  AttachReply reply;
  ASSERT_EQ(recv(fd, &reply, sizeof(reply), 0),
            static_cast<ssize_t>(sizeof(reply)));

  EXPECT_EQ(reply.status, AttachStatus::kLayoutDiffers);
  EXPECT_THAT(reply.message.data(), testing::HasSubstr("install the same"));
  close(fd);
}

TEST_F(AttachServerTest, ManyAttachAndLeaveWithoutLeavingASlotBehind) {
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 20; ++i) {
      children.push_back(Child([](memtuned_pool*) {}));
    }
    for (pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  }

  EXPECT_TRUE(Eventually([&] { return AllBack(); }));
}

TEST_F(AttachServerTest, TheSocketHasItsModeAndGoesWithThePool) {
  struct stat file;
  ASSERT_EQ(stat(socket_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0660u);

  pool_.reset();

  EXPECT_NE(stat(socket_.c_str(), &file), 0);
}

}  // namespace
}  // namespace memtuned
