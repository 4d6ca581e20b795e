// SPDX-License-Identifier: Apache-2.0
// Health and reflection are services of the library: an interceptor is the
// one place where their calls can be ended.
#include <grpc/grpc.h>
#include <grpcpp/support/interceptor.h>

#include "absl/strings/match.h"
#include "daemon/rpc/gate.h"

namespace memtuned {
namespace {

class LibraryGate : public grpc::experimental::Interceptor {
 public:
  LibraryGate(Gate* gate, grpc::experimental::ServerRpcInfo* info)
      : gate_(gate), info_(info) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(Point::POST_RECV_INITIAL_METADATA)) {
      const absl::Status admitted =
          gate_->AdmitToLibrary(*info_->server_context(), info_->method());
      if (!admitted.ok()) End(admitted);
    }
    batch->Proceed();
  }

 private:
  // What the handler answers afterwards goes nowhere.
  void End(const absl::Status& status) {
    grpc_call_cancel_with_status(info_->server_context()->c_call(),
                                 static_cast<grpc_status_code>(status.code()),
                                 std::string(status.message()).c_str(),
                                 nullptr);
  }

  Gate* const gate_;
  grpc::experimental::ServerRpcInfo* const info_;
};

class LibraryGateFactory
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit LibraryGateFactory(Gate* gate) : gate_(gate) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    if (!absl::StartsWith(info->method(), "/grpc.")) return nullptr;
    return new LibraryGate(gate_, info);
  }

 private:
  Gate* const gate_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
MakeLibraryGate(Gate* gate) {
  return std::make_unique<LibraryGateFactory>(gate);
}

}  // namespace memtuned
