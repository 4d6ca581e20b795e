// SPDX-License-Identifier: Apache-2.0
// One interceptor a call; it reports when the status is sent.
#include "daemon/rpc/call_observer.h"

#include <grpcpp/support/interceptor.h>

#include <chrono>

#include "daemon/access/method_table.h"

namespace memtuned {
namespace {

class CallObserver : public grpc::experimental::Interceptor {
 public:
  CallObserver(RpcObserver* observer, const char* method)
      : observer_(observer),
        method_(method),
        start_(std::chrono::steady_clock::now()) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) {
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - start_;
      observer_->Observe(method_, batch->GetSendStatus().error_code(),
                         took.count());
    }
    batch->Proceed();
  }

 private:
  RpcObserver* const observer_;
  const char* const method_;
  const std::chrono::steady_clock::time_point start_;
};

class Factory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(RpcObserver* observer) : observer_(observer) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new CallObserver(observer_, ObservedMethod(info->method()));
  }

 private:
  RpcObserver* const observer_;
};

}  // namespace

const char* ObservedMethod(const char* path) {
  const MethodRule* rule = FindMethodByPath(path);
  return rule != nullptr && rule->IsOurs() ? rule->name : "other";
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
MakeCallObserver(RpcObserver* observer) {
  return std::make_unique<Factory>(observer);
}

}  // namespace memtuned
