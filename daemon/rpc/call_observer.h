// SPDX-License-Identifier: Apache-2.0
// Feeds an RpcObserver from gRPC's interceptors, which see every call,
// unknown methods included. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_CALL_OBSERVER_H_
#define MEMTUNED_DAEMON_RPC_CALL_OBSERVER_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "daemon/rpc/rpc_observer.h"

namespace memtuned {

// "/memtuned.v1.TuningService/Drain" -> "TuningService/Drain"; anything that
// is not a method of ours -> "other".
const char* ObservedMethod(const char* path);

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
MakeCallObserver(RpcObserver* observer);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_CALL_OBSERVER_H_
