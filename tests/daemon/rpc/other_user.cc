// SPDX-License-Identifier: Apache-2.0
// The calls themselves, not their wrappers: those change all threads.
#include "tests/daemon/rpc/other_user.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace memtuned {
namespace {

void Check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

void BecomeInThisThread(const OtherUser& user) {
  Check(syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0,
        "setgroups");
  Check(syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0, "setresgid");
  Check(syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0, "setresuid");
}

}  // namespace

int ConnectAs(const std::string& listen, const OtherUser& user) {
  int fd = -1;
  std::thread([&] {
    BecomeInThisThread(user);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    listen.copy(address.sun_path, sizeof(address.sun_path) - 1, 5);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    Check(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
              0,
          listen.c_str());
  }).join();
  return fd;
}

std::shared_ptr<grpc::Channel> ChannelAs(const std::string& listen,
                                         const OtherUser& user) {
  const int fd = ConnectAs(listen, user);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return grpc::CreateInsecureChannelFromFd(listen, fd);
}

}  // namespace memtuned
