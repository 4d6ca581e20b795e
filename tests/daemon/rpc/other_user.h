// SPDX-License-Identifier: Apache-2.0
// Connections of other users, made by a thread that becomes one: the kernel
// keeps credentials by thread, and a socket those of connect(). Needs root.
#ifndef MEMTUNED_TESTS_DAEMON_RPC_OTHER_USER_H_
#define MEMTUNED_TESTS_DAEMON_RPC_OTHER_USER_H_

#include <grpcpp/channel.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace memtuned {

struct OtherUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
};

// `listen` is "unix:PATH". Returns: a connected socket; aborts when there is
// none.
int ConnectAs(const std::string& listen, const OtherUser& user);

// A channel over such a socket: it does not connect again.
std::shared_ptr<grpc::Channel> ChannelAs(const std::string& listen,
                                         const OtherUser& user);

}  // namespace memtuned

#endif  // MEMTUNED_TESTS_DAEMON_RPC_OTHER_USER_H_
