// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a call. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_PEER_H_
#define MEMTUNED_DAEMON_RPC_PEER_H_

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "daemon/access/caller.h"

namespace memtuned {

// Of a Unix connection the kernel's word, of a TLS one the certificate's
// SPIFFE id, else its first URI, else its first DNS name.
//
// A Unix connection is known by its descriptor. Its number cannot be another
// connection's meanwhile: gRPC keeps the descriptor open until the last call
// of the connection is gone, whether or not the peer still is there
// (tests/daemon/rpc/peer_test.cc holds gRPC to it).
//
// Errors: kUnauthenticated.
absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_PEER_H_
