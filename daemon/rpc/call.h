// SPDX-License-Identifier: Apache-2.0
// Deadlines of calls. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_CALL_H_
#define MEMTUNED_DAEMON_RPC_CALL_H_

#include <grpcpp/server_context.h>

#include <algorithm>
#include <chrono>

#include "daemon/sampler.h"

namespace memtuned {

inline bool HasDeadline(const grpc::ServerContext& context) {
  return context.deadline() != std::chrono::system_clock::time_point::max();
}

// On the steady clock; an hour away when the caller set none or a later one.
inline SteadyTime DeadlineOf(const grpc::ServerContext& context) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds hour = std::chrono::hours(1);
  if (!HasDeadline(context)) return now + hour;
  const std::chrono::nanoseconds left =
      context.deadline() - std::chrono::system_clock::now();
  return now + std::min(left, hour);
}

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_CALL_H_
