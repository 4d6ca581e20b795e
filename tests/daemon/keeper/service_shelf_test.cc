// SPDX-License-Identifier: Apache-2.0
// The service manager's side is a socket of our own that keeps what it is
// told to, and hands it over as systemd does.
#include "daemon/keeper/service_shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>

#include <map>

#include "daemon/keeper/fd_message.h"
#include "tests/daemon/keeper/keeper_test_util.h"

namespace memtuned {
namespace {

TEST(ShelfNameTest, SaysWhichDescriptorItIs) {
  ShelfName name;
  ASSERT_TRUE(name.Parse("default~2.1025.1.3"));

  EXPECT_EQ(name.key.pool, "default~2");
  EXPECT_EQ(name.key.client, 1025u);
  EXPECT_EQ(name.number, 1u);
  EXPECT_EQ(name.total, 3u);
  EXPECT_EQ(name.Text(), "default~2.1025.1.3");
}

TEST(ShelfNameTest, RefusesWhatIsNone) {
  for (const char* text : {"", "stored", "p.0.0", "p.0.0.1.2", "p.0.3.3",
                           "p.0.0.99999", "p.-1.0.1", "p.x.0.1", "P.0.0.1",
                           "a/b.0.0.1", ".0.0.1", "p.4294967296.0.1"}) {
    EXPECT_FALSE(ShelfName().Parse(text)) << text;
  }
}

class ServiceShelfTest : public testing::Test {
 protected:
  void SetUp() override {
    socket_ = FileDescriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, folder_.socket().c_str(),
                 sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    setenv("NOTIFY_SOCKET", folder_.socket().c_str(), 1);
  }
  void TearDown() override { unsetenv("NOTIFY_SOCKET"); }

  // Does what the messages that came say.
  void Read() {
    char text[512];
    for (;;) {
      ReceivedMessage got =
          ReceiveWithFds(socket_.get(), text, sizeof(text), MSG_DONTWAIT);
      if (got.bytes < 0) return;
      const std::string said(text, static_cast<size_t>(got.bytes));
      const std::string name = said.substr(said.find("FDNAME=") + 7);
      if (said.starts_with("FDSTOREREMOVE=1\n")) {
        stored_.erase(name);
      } else {
        EXPECT_TRUE(said.starts_with("FDSTORE=1\nFDPOLL=0\n")) << said;
        EXPECT_EQ(got.fds.size(), 1u);
        stored_[name] = std::move(got.fds.at(0));
      }
    }
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [name, fd] : stored_) names.push_back(name);
    return names;
  }
  // In a child that gets all of it, as LISTEN_FDS says. Its exit code.
  template <typename Body>
  int NextMainProcess(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      // From the last name on: the order says nothing.
      int number = 3;
      std::string names;
      std::vector<int> fds;
      for (auto it = stored_.rbegin(); it != stored_.rend(); ++it) {
        names += (names.empty() ? "" : ":") + it->first;
        fds.push_back(fcntl(it->second.get(), F_DUPFD, 100));
      }
      for (int fd : fds) dup2(fd, number++);
      setenv("LISTEN_FDS", std::to_string(fds.size()).c_str(), 1);
      setenv("LISTEN_FDNAMES", names.c_str(), 1);
      setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
      _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  KeeperFolder folder_;
  FileDescriptor socket_;
  std::map<std::string, FileDescriptor> stored_;
  ServiceShelf shelf_;
};

TEST_F(ServiceShelfTest, GivesEachDescriptorAName) {
  const FileDescriptor file(FileWith("p"));
  const int fds[] = {file.get(), file.get()};

  shelf_.Store({"p", 0}, fds);
  shelf_.Store({"p", 7}, std::span<const int>(fds, 1));
  Read();

  EXPECT_THAT(Names(), testing::ElementsAre("p.0.0.2", "p.0.1.2", "p.7.0.1"));
}

TEST_F(ServiceShelfTest, ForgetsAPoolWithItsClients) {
  const FileDescriptor file(FileWith("p"));
  const int fds[] = {file.get()};
  shelf_.Store({"p", 0}, fds);
  shelf_.Store({"p", 7}, fds);
  shelf_.Store({"q", 0}, fds);
  shelf_.Store({"q", 8}, fds);

  shelf_.Forget({"q", 8});
  shelf_.Forget({"p", 0});
  Read();

  EXPECT_THAT(Names(), testing::ElementsAre("q.0.0.1"));
}

TEST_F(ServiceShelfTest, TheNextMainProcessHasAllOfIt) {
  const FileDescriptor one(FileWith("one")), two(FileWith("two"));
  const int fds[] = {one.get(), two.get()};
  shelf_.Store({"p", 0}, fds);
  shelf_.Store({"p", 7}, std::span<const int>(fds, 1));
  Read();
  stored_["something.else"] = FileDescriptor(FileWith("x"));
  stored_["q.0.1.2"] = FileDescriptor(FileWith("half of q"));

  const int code = NextMainProcess([] {
    ServiceShelf next;
    const std::vector<KeptFds> groups = next.TakeAll();
    if (groups.size() != 2) return 1;
    if (groups[0].key != FdKey{"p", 0} || groups[1].key != FdKey{"p", 7}) {
      return 2;
    }
    if (TextOf(groups[0].fds[0]) != "one" ||
        TextOf(groups[0].fds[1]) != "two") {
      return 3;
    }
    if (getenv("LISTEN_FDS") != nullptr) return 4;
    next.Forget({"p", 0});
    next.Forget({"q", 0});  // half of it was there
    return 0;
  });
  Read();

  EXPECT_EQ(code, 0);
  EXPECT_THAT(Names(), testing::ElementsAre("something.else"));
}

TEST_F(ServiceShelfTest, TheStoreTakesFromTheManagerWhatTheKeeperLacks) {
  const FileDescriptor file(FileWith("p"));
  const FileDescriptor pidfd = PidfdOf(getpid());
  const int files[] = {file.get()};
  const int pidfds[] = {pidfd.get()};
  shelf_.Store({"p", 0}, files);
  shelf_.Store({"p", 7}, pidfds);
  Read();

  const int code = NextMainProcess([this] {
    FdStore store({folder_.socket() + "2", KEEPER_PROGRAM});
    auto pool = store.Take("p");
    if (!pool.has_value() || pool->source != "service manager") return 1;
    if (pool->clients.size() != 1 || pool->clients[0].owner != 7) return 2;
    if (TextOf(pool->files[0]) != "p") return 3;
    return 0;
  });

  EXPECT_EQ(code, 0);
}

TEST_F(ServiceShelfTest, OfTwoPoolsOfOneNameTheKeepersIsLeft) {
  const FileDescriptor file(FileWith("manager's"));
  const FileDescriptor pidfd = PidfdOf(getpid());
  const int files[] = {file.get()};
  shelf_.Store({"p", 0}, files);
  Read();
  KeeperFolder other;
  unsetenv("NOTIFY_SOCKET");
  Victim daemon([&] {
    auto* store = new FdStore(other.options());
    store->StorePool("p", {FileWith("keeper's")});
    store->StoreClient("p", 9, -1, pidfd.get());
  });
  daemon.Kill();
  setenv("NOTIFY_SOCKET", folder_.socket().c_str(), 1);

  const int code = NextMainProcess([&other] {
    FdStore store(other.options());
    auto pool = store.Take("p");
    if (!pool.has_value() || TextOf(pool->files[0]) != "manager's") return 1;
    return pool->clients.empty() ? 0 : 2;
  });
  Read();

  EXPECT_EQ(code, 0);
  EXPECT_THAT(Names(),
              testing::ElementsAre("p.0.0.1", "p~1.0.0.1", "p~1.9.0.1"));
}

}  // namespace
}  // namespace memtuned
