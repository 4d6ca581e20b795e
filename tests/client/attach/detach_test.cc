// SPDX-License-Identifier: Apache-2.0
// What detaching leaves behind.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "core/attach_message.h"
#include "core/slot_table.h"
#include "memtuned/pool.h"
#include "tests/support/attach_test_server.h"

namespace memtuned::test {
namespace {

// A pool whose daemon went away as soon as it had answered.
TEST(DetachTest, LeavesAWordInTheSlotForALaterDaemon) {
  AttachTestServer owner;  // of the segment; its socket is not used
  Segment& segment = owner.segment();
  AttachReply reply;
  reply.owner = *TakeProcessSlot(segment, {});
  reply.layout_version = kLayoutVersion;
  reply.abi_hash = AbiHash();
  reply.nr_frame_fds = 1;
  ScriptedServer server([&](int connection) {
    AttachRequest request;
    recv(connection, &request, sizeof(request), 0);
    SendWithFds(connection, &reply, sizeof(reply),
                {segment.metadata_fd(), segment.frame_fds()[0]});
  });
  auto pool = Pool::Attach(server.path());
  ASSERT_TRUE(pool) << pool.error().message();
  const Shared32& state = FindProcessSlot(segment, reply.owner)->state;
  const uint32_t before = Load(state);

  { Pool gone = *std::move(pool); }

  EXPECT_EQ(before, static_cast<uint32_t>(SlotState::kAttached));
  EXPECT_EQ(Load(state), static_cast<uint32_t>(SlotState::kDetached));
}

}  // namespace
}  // namespace memtuned::test
