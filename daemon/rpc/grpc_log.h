// SPDX-License-Identifier: Apache-2.0
// What gRPC itself has to say, as log lines of the daemon. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_GRPC_LOG_H_
#define MEMTUNED_DAEMON_RPC_GRPC_LOG_H_

namespace memtuned {

// Anybody who reaches the TLS port makes gRPC complain about handshakes.
inline constexpr int kMaxGrpcLinesASecond = 5;

// From here on gRPC's messages are events "grpc" at level warning; beyond
// kMaxGrpcLinesASecond they are only counted, and the next line that is
// written says how many. For the whole process; may be called again.
void RouteGrpcLog();

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_GRPC_LOG_H_
