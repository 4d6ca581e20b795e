// SPDX-License-Identifier: Apache-2.0
// What outlives a daemon that is killed, with real keepers and daemons.
#include "daemon/keeper/fd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/keeper/keeper_test_util.h"

namespace memtuned {
namespace {

using testing::ElementsAre;

// Both ends of a connection, as a daemon and a process have it.
struct Connection {
  Connection() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      abort();
    daemon = FileDescriptor(ends[0]);
    process = FileDescriptor(ends[1]);
  }
  FileDescriptor daemon, process;
};

class FdStoreTest : public testing::Test {
 protected:
  std::vector<std::string> TextsOf(const KeptPool& pool) {
    std::vector<std::string> texts;
    for (const FileDescriptor& fd : pool.files) texts.push_back(TextOf(fd));
    return texts;
  }
  KeeperFolder folder_;
};

TEST_F(FdStoreTest, StartsNoKeeperForNothing) {
  FdStore store(folder_.options());
  store.ForgetPool("p");
  store.Tend();

  EXPECT_FALSE(store.Take("p").has_value());
  EXPECT_FALSE(folder_.HasSocket());
}

TEST_F(FdStoreTest, APoolOutlivesTheKillOfItsDaemon) {
  Victim client([] {});
  const FileDescriptor pidfd = PidfdOf(client.pid());
  Connection connection;
  Victim daemon([&] {
    auto* store = new FdStore(folder_.options());
    store->StorePool(
        "p", {FileWith("metadata"), FileWith("node 0"), FileWith("node 1")});
    store->StoreClient("p", 77, connection.daemon.get(), pidfd.get());
    store->StoreClient("p", 78, -1, pidfd.get());
  });
  ASSERT_TRUE(daemon.ready());
  daemon.Kill();

  FdStore store(folder_.options());
  auto pool = store.Take("p");

  ASSERT_TRUE(pool.has_value());
  EXPECT_FALSE(store.Take("p").has_value()) << "once";
  EXPECT_EQ(pool->source, "keeper");
  EXPECT_THAT(TextsOf(*pool), ElementsAre("metadata", "node 0", "node 1"));
  ASSERT_EQ(pool->clients.size(), 2u);
  EXPECT_EQ(pool->clients[0].owner, 77u);
  EXPECT_EQ(InodeOf(pool->clients[0].connection.get()),
            InodeOf(connection.daemon.get()));
  EXPECT_EQ(pool->clients[1].owner, 78u);
  EXPECT_LT(pool->clients[1].connection.get(), 0);
  EXPECT_FALSE(pool->clients[0].HasLeft());
  connection.process.Reset();
  EXPECT_TRUE(pool->clients[0].HasLeft()) << "it detached";
  client.Kill();
  EXPECT_TRUE(pool->clients[1].HasLeft()) << "it ended";
}

TEST_F(FdStoreTest, APoolOfManyNodesKeepsItsOrder) {
  Victim daemon([&] {
    auto* store = new FdStore(folder_.options());
    std::vector<int> files;
    files.reserve(600);
    for (int i = 0; i < 600; ++i) files.push_back(FileWith(std::to_string(i)));
    store->StorePool("p", files);
  });
  daemon.Kill();

  FdStore store(folder_.options());
  auto pool = store.Take("p");

  ASSERT_TRUE(pool.has_value());
  ASSERT_EQ(pool->files.size(), 600u);
  for (size_t i = 0; i < 600; ++i) {
    ASSERT_EQ(TextOf(pool->files[i]), std::to_string(i));
  }
}

TEST_F(FdStoreTest, WhatIsForgottenIsGoneAndTheKeeperWithTheLastOfIt) {
  {
    FdStore store(folder_.options());
    const FileDescriptor a(FileWith("a")), b(FileWith("b"));
    const FileDescriptor pidfd = PidfdOf(getpid());
    store.StorePool("a", {a.get()});
    store.StorePool("b", {b.get()});
    store.StoreClient("a", 1, -1, pidfd.get());
    store.StoreClient("b", 1, -1, pidfd.get());
    store.StoreClient("b", 2, -1, pidfd.get());
    EXPECT_NE(folder_.NewKeeper(), 0);
    store.ForgetPool("a");
    store.ForgetClient("b", 1);
  }
  {
    FdStore store(folder_.options());
    EXPECT_FALSE(store.Take("a").has_value());
    auto b = store.Take("b");
    ASSERT_TRUE(b.has_value());
    ASSERT_EQ(b->clients.size(), 1u);
    EXPECT_EQ(b->clients[0].owner, 2u);
    store.ForgetPool("b");
  }

  EXPECT_TRUE(Soon([&] { return folder_.Keeper() == 0; }));
  EXPECT_FALSE(folder_.HasSocket());
}

TEST_F(FdStoreTest, AReleasedPoolGoesWithItsLastProcess) {
  Victim client([] {});
  const FileDescriptor pidfd = PidfdOf(client.pid());
  Connection first, second;
  {
    FdStore store(folder_.options());
    const FileDescriptor file(FileWith("p"));
    store.StorePool("p", {file.get()});
    store.StoreClient("p", 1, first.daemon.get(), pidfd.get());
    store.StoreClient("p", 2, second.daemon.get(), pidfd.get());
    store.ReleasePool("p");
  }
  first.process.Reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const bool kept = folder_.NewKeeper() != 0;
  client.Kill();

  EXPECT_TRUE(kept);
  EXPECT_TRUE(Soon([&] { return folder_.Keeper() == 0; }));
}

TEST_F(FdStoreTest, AReleasedPoolMayBeTakenMeanwhile) {
  Connection connection;
  const FileDescriptor pidfd = PidfdOf(getpid());
  const FileDescriptor file(FileWith("p"));
  {
    FdStore store(folder_.options());
    store.StorePool("p", {file.get()});
    store.StoreClient("p", 1, connection.daemon.get(), pidfd.get());
    store.ReleasePool("p");
  }

  FdStore store(folder_.options());
  auto pool = store.Take("p");
  ASSERT_TRUE(pool.has_value());
  store.StorePool("p", {file.get()});
  connection.process.Reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));

  EXPECT_NE(folder_.NewKeeper(), 0) << "who stores it serves it";
  store.ForgetPool("p");
}

TEST_F(FdStoreTest, AKeeperThatEndedIsReplacedAndToldEverything) {
  Connection connection;
  const FileDescriptor file(FileWith("p"));
  const FileDescriptor pidfd = PidfdOf(getpid());
  Victim daemon([&] {
    auto* store = new FdStore(folder_.options());
    store->StorePool("p", {file.get()});
    store->StoreClient("p", 5, connection.daemon.get(), pidfd.get());
    const pid_t keeper = folder_.NewKeeper();
    if (keeper > 0) kill(keeper, SIGKILL);
    while (folder_.Keeper() != 0) usleep(1000);
    store->Tend();
  });
  ASSERT_TRUE(daemon.ready());
  daemon.Kill();

  FdStore store(folder_.options());
  auto pool = store.Take("p");

  ASSERT_TRUE(pool.has_value());
  EXPECT_EQ(TextOf(pool->files[0]), "p");
  ASSERT_EQ(pool->clients.size(), 1u);
  store.ForgetPool("p");
}

TEST_F(FdStoreTest, AKeeperThatHangsIsReplaced) {
  const FileDescriptor file(FileWith("p"));
  Victim daemon([&] {
    auto* store = new FdStore(folder_.options());
    store->StorePool("p", {file.get()});
  });
  daemon.Kill();
  const pid_t hung = folder_.NewKeeper();
  ASSERT_GT(hung, 0);
  kill(hung, SIGSTOP);

  FdStore store(folder_.options());
  const bool taken = store.Take("p").has_value();
  store.StorePool("p", {file.get()});
  kill(hung, SIGCONT);

  EXPECT_FALSE(taken);
  // Its socket is another's now: it ends, and the new one stays.
  EXPECT_TRUE(Soon([&] { return !Runs(hung); }));
  EXPECT_NE(folder_.NewKeeper(), 0);
  EXPECT_TRUE(folder_.HasSocket());
  store.ForgetPool("p");
}

// A daemon of another layout: it cannot serve what it finds.
TEST_F(FdStoreTest, APoolThatIsLeftStaysUntilItsProcessesGo) {
  Victim client([] {});
  const FileDescriptor pidfd = PidfdOf(client.pid());
  Victim daemon([&] {
    auto* store = new FdStore(folder_.options());
    store->StorePool("p", {FileWith("old"), FileWith("frames")});
    store->StoreClient("p", 77, -1, pidfd.get());
  });
  daemon.Kill();

  const FileDescriptor file(FileWith("new"));
  FdStore store(folder_.options());
  store.Leave(*store.Take("p"), "layout 1 is not layout 2");
  store.StorePool("p", {file.get()});
  store.Tend();
  // Streams, listener and its file, connection, the new pool; metadata, frames,
  // pidfd.
  const bool kept = Soon([&] { return folder_.FdsOfKeeper() == 7 + 3; });
  client.Kill();
  store.Tend();

  EXPECT_TRUE(kept);
  EXPECT_TRUE(Soon([&] { return folder_.FdsOfKeeper() == 7; }));
  store.ForgetPool("p");
}

TEST_F(FdStoreTest, APoolThatWasLeftIsNotServedByALaterDaemon) {
  Victim client([] {});
  const FileDescriptor pidfd = PidfdOf(client.pid());
  Victim first([&] {
    auto* store = new FdStore(folder_.options());
    store->StorePool("p", {FileWith("old")});
    store->StoreClient("p", 77, -1, pidfd.get());
  });
  first.Kill();
  Victim second([&] {
    auto* store = new FdStore(folder_.options());
    store->LeaveRest("no pool of that name is configured");
  });
  second.Kill();
  {
    FdStore third(folder_.options());

    EXPECT_FALSE(third.Take("p").has_value());
    EXPECT_FALSE(third.Take("p~1").has_value());
  }
  EXPECT_NE(folder_.NewKeeper(), 0);
  client.Kill();
  EXPECT_TRUE(Soon([&] { return folder_.Keeper() == 0; }))
      << "without any daemon, too";
}

TEST_F(FdStoreTest, APoolNobodyIsAttachedToIsDroppedAtOnce) {
  Victim daemon([&] {
    auto* store = new FdStore(folder_.options());
    store->StorePool("p", {FileWith("old")});
  });
  daemon.Kill();
  {
    FdStore store(folder_.options());
    store.LeaveRest("no pool of that name is configured");
  }

  EXPECT_TRUE(Soon([&] { return folder_.Keeper() == 0; }));
}

}  // namespace
}  // namespace memtuned
