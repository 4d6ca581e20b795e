// SPDX-License-Identifier: Apache-2.0
// The fake's server, topology service and errors.
#include "tests/client/ctl/fake_daemon.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <thread>

namespace memtuned::ctl {
namespace {

class FakeTopology final : public v1::TopologyService::Service {
 public:
  explicit FakeTopology(FakeState* state) : state_(state) {}

  // One subject a page.
  grpc::Status ListSubjects(grpc::ServerContext* context,
                            const v1::ListSubjectsRequest* request,
                            v1::ListSubjectsResponse* response) override {
    const grpc::Status entered = state_->Enter("ListSubjects", "", *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    response->set_daemon_version("9.8.7");
    const size_t at =
        request->page_token().empty() ? 0 : std::stoul(request->page_token());
    if (at >= state_->subjects.size()) return grpc::Status::OK;
    v1::Subject& subject = *response->add_subjects();
    subject.set_name(state_->subjects[at]);
    subject.set_kind(v1::SUBJECT_KIND_POOL);
    subject.set_state(v1::SUBJECT_STATE_READY);
    subject.set_generation(state_->generation);
    subject.set_etag(state_->etag);
    subject.add_capabilities("set");
    subject.add_capabilities("drain");
    subject.set_page_size_bytes(4096);
    subject.set_size_bytes(int64_t{1} << 30);
    subject.set_initialised_bytes(int64_t{1} << 29);
    subject.set_policy("memtuned");
    if (state_->holder_stopped) {
      subject.set_state(v1::SUBJECT_STATE_DEGRADED);
      subject.set_degraded_reason(
          "nodes/0/zones/Normal is held by process 4-2 (pid 4242), stopped for "
          "12 s");
    }
    if (at + 1 < state_->subjects.size()) {
      response->set_next_page_token(std::to_string(at + 1));
    }
    return grpc::Status::OK;
  }

  grpc::Status GetTopology(grpc::ServerContext* context,
                           const v1::GetTopologyRequest* request,
                           v1::GetTopologyResponse* response) override {
    const grpc::Status entered =
        state_->Enter("GetTopology", request->name(), *context);
    if (!entered.ok()) return entered;
    v1::Topology& topology = *response->mutable_topology();
    topology.set_name(request->name());
    topology.set_source(v1::TOPOLOGY_SOURCE_SYNTHETIC);
    topology.set_description("synthetic:node:2 pu:4");
    for (const int index : {0, 1000}) {
      v1::Node& node = *topology.add_nodes();
      node.set_os_index(index);
      node.set_memory_bytes(int64_t{256} << 30);
      for (int cpu = 0; cpu < 4; ++cpu) {
        node.add_cpus(cpu + (index == 0 ? 0 : 4));
      }
      node.add_distances(index == 0 ? 10 : 21);
      node.add_distances(index == 0 ? 21 : 10);
      node.add_zones("Normal");
    }
    topology.add_offline_cpus(8);
    topology.add_warnings("node 1000 has no distance to itself");
    return grpc::Status::OK;
  }

 private:
  FakeState* const state_;
};

}  // namespace

grpc::Status FakeState::Enter(const std::string& method,
                              const std::string& subject,
                              const grpc::ServerContext& context) {
  std::chrono::milliseconds wait{0};
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ++calls;
    wait = delay;
    for (const std::string& key : {method, method + " " + subject}) {
      const auto failure = failures.find(key);
      if (failure != failures.end()) return failure->second;
    }
  }
  const auto end = std::chrono::steady_clock::now() + wait;
  while (std::chrono::steady_clock::now() < end && !context.IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (subject.empty()) return grpc::Status::OK;
  const std::lock_guard<std::mutex> lock(mutex);
  return FindSubject(*this, subject);
}

grpc::Status FindSubject(const FakeState& state, const std::string& subject) {
  if (std::find(state.subjects.begin(), state.subjects.end(), subject) !=
      state.subjects.end()) {
    return grpc::Status::OK;
  }
  return MakeError(grpc::StatusCode::NOT_FOUND,
                   "there is no subject \"" + subject + "\"", "NO_SUCH_SUBJECT",
                   "name", "\"" + subject + "\"; allowed pools/default");
}

grpc::Status MakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field,
                       const std::string& description) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_domain("memtuned.v1");
  info.set_reason(reason);
  status.add_details()->PackFrom(info);
  if (!field.empty()) {
    google::rpc::BadRequest bad_request;
    auto* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(description);
    status.add_details()->PackFrom(bad_request);
  }
  return {code, message, status.SerializeAsString()};
}

FakeDaemon::FakeDaemon()
    : topology_(std::make_unique<FakeTopology>(&state_)),
      stats_(MakeStatsService(&state_)),
      tuning_(MakeTuningService(&state_)) {
  state_.tunables["pageset.batch_factor"].set_real(1);
  state_.tunables["pageset.policy"].set_choice("memtuned");
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
  builder.RegisterService(topology_.get());
  builder.RegisterService(stats_.get());
  builder.RegisterService(tuning_.get());
  server_ = builder.BuildAndStart();
  SetHealth("memtuned.v1/pools/default", true);
}

FakeDaemon::~FakeDaemon() { Stop(); }

void FakeDaemon::SetHealth(const std::string& service, bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(service, serving);
}

void FakeDaemon::Stop() {
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(200));
}

}  // namespace memtuned::ctl
