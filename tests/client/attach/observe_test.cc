// SPDX-License-Identifier: Apache-2.0
// Attaching to read only, as the library asks for it and takes the answer; what
// the daemon does is tested in tests/daemon/pool/pool_users_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include "core/attach_message.h"
#include "core/slot_table.h"
#include "memtuned/pool.h"
#include "tests/client/attach/child_process.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::test {
namespace {

class ObserveTest : public testing::Test {
 protected:
  // Attaches to read, to a server that answers with this slot.
  Result<Pool> AttachAnswered(ProcessOwner owner) {
    AttachReply reply;
    reply.owner = owner;
    reply.layout_version = kLayoutVersion;
    reply.abi_hash = AbiHash();
    reply.nr_frame_fds = 1;
    ScriptedServer server([&](int connection) {
      recv(connection, &request_, sizeof(request_), 0);
      SendWithFds(
          connection, &reply, sizeof(reply),
          {server_.segment().metadata_fd(), server_.segment().frame_fds()[0]});
    });
    return Pool::AttachToRead(server.path());
  }

  AttachTestServer server_;  // of the segment; its socket is not used
  AttachRequest request_;
};

TEST_F(ObserveTest, AsksToReadAndMapsWhatMayBeWrittenForReading) {
  auto pool = AttachAnswered(0);
  ASSERT_TRUE(pool) << pool.error().message();
  auto* frame = static_cast<volatile char*>(pool->FromOffset(0));

  const int code = RunInChild([&] {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer would end it its own way
    static_cast<void>(*frame);
    *frame = 1;
    return 0;
  });

  EXPECT_EQ(request_.flags, kAttachToRead);
  EXPECT_EQ(code, 128 + SIGSEGV);
}

TEST_F(ObserveTest, TakesNoProcessSlot) {
  const auto pool = AttachAnswered(*TakeProcessSlot(server_.segment(), {}));

  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().status(), MEMTUNED_BAD_REPLY);
  EXPECT_THAT(pool.error().message(), testing::HasSubstr("process slot"));
}

}  // namespace
}  // namespace memtuned::test
