// SPDX-License-Identifier: Apache-2.0
// The fake's tuning service: keeps values, generation and etag, and refuses
// what the real one refuses.
#include "tests/client/ctl/fake_daemon.h"

namespace memtuned::ctl {
namespace {

constexpr double kMaxBatchFactor = 8;

class FakeTuning final : public v1::TuningService::Service {
 public:
  explicit FakeTuning(FakeState* state) : state_(state) {}

  grpc::Status ListTunables(grpc::ServerContext* context,
                            const v1::ListTunablesRequest* request,
                            v1::ListTunablesResponse* response) override {
    const grpc::Status entered =
        state_->Enter("ListTunables", request->parent(), *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (const auto& [name, value] : state_->tunables) {
      *response->add_tunables() = MakeTunable(request->parent(), name, value);
    }
    response->set_etag(state_->etag);
    response->set_generation(state_->generation);
    return grpc::Status::OK;
  }

  grpc::Status GetTunable(grpc::ServerContext* context,
                          const v1::GetTunableRequest* request,
                          v1::GetTunableResponse* response) override {
    const size_t slash = request->name().find("/tunables/");
    const std::string subject = request->name().substr(0, slash);
    const grpc::Status entered = state_->Enter("GetTunable", subject, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const std::string name = request->name().substr(slash + 10);
    const auto found = state_->tunables.find(name);
    if (found == state_->tunables.end()) {
      return MakeError(grpc::StatusCode::NOT_FOUND,
                       "there is no tunable \"" + name + "\"",
                       "NO_SUCH_TUNABLE");
    }
    *response->mutable_tunable() = MakeTunable(subject, name, found->second);
    response->set_etag(state_->etag);
    response->set_generation(state_->generation);
    return grpc::Status::OK;
  }

  grpc::Status SetTunables(grpc::ServerContext* context,
                           const v1::SetTunablesRequest* request,
                           v1::SetTunablesResponse* response) override {
    const grpc::Status entered = Begin("SetTunables", *request, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->last_set = *request;
    v1::Change& change = *response->mutable_change();
    change.set_kind(v1::CHANGE_KIND_SET);
    for (int i = 0; i < request->assignments_size(); ++i) {
      const v1::Assignment& assignment = request->assignments(i);
      if (assignment.value().real() > kMaxBatchFactor) {
        return MakeError(grpc::StatusCode::INVALID_ARGUMENT,
                         "1 field is not valid", "INVALID_FIELD",
                         "assignments[" + std::to_string(i) + "].value",
                         "too large; allowed 0.25 to 8");
      }
      v1::ValueChange& value = *change.add_values();
      value.set_tunable(assignment.tunable());
      *value.mutable_before() = state_->tunables[assignment.tunable()];
      *value.mutable_requested() = assignment.value();
      *value.mutable_after() = assignment.value();
      if (!request->validate_only()) {
        state_->tunables[assignment.tunable()] = assignment.value();
      }
    }
    AddEffects(change);
    Finish(*request, change);
    return grpc::Status::OK;
  }

  grpc::Status Recalculate(grpc::ServerContext* context,
                           const v1::RecalculateRequest* request,
                           v1::RecalculateResponse* response) override {
    const grpc::Status entered = Begin("Recalculate", *request, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->last_recalculate = *request;
    v1::Change& change = *response->mutable_change();
    change.set_kind(v1::CHANGE_KIND_RECALCULATE);
    AddEffects(change);
    Finish(*request, change);
    return grpc::Status::OK;
  }

  grpc::Status Drain(grpc::ServerContext* context,
                     const v1::DrainRequest* request,
                     v1::DrainResponse* response) override {
    const grpc::Status entered = Begin("Drain", *request, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->last_drain = *request;
    response->mutable_change()->set_kind(v1::CHANGE_KIND_DRAIN);
    Finish(*request, *response->mutable_change());
    v1::ZoneDrain& zone = *response->mutable_result()->add_zones();
    zone.set_zone(request->parent() + "/nodes/0/zones/Normal");
    zone.set_pages_before(36472);
    zone.set_pages_after(173);
    zone.set_largest_free_order_before(-1);
    zone.set_largest_free_order_after(10);
    v1::CpuDrain& cpu = *zone.add_cpus();
    cpu.set_cpu(5);
    cpu.set_pages(378);
    for (const std::string& text : state_->not_drained) {
      response->mutable_result()->add_not_drained(text);
      response->mutable_change()->set_state(v1::CHANGE_STATE_PARTIAL);
    }
    return grpc::Status::OK;
  }

  grpc::Status SetProcessLimit(grpc::ServerContext* context,
                               const v1::SetProcessLimitRequest* request,
                               v1::SetProcessLimitResponse* response) override {
    const grpc::Status entered = Begin("SetProcessLimit", *request, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->last_limit = *request;
    v1::Change& change = *response->mutable_change();
    change.set_kind(v1::CHANGE_KIND_SET);
    v1::ValueChange& value = *change.add_values();
    value.set_scope("processes/" + request->process());
    value.set_tunable("process.max_bytes");
    value.mutable_before()->mutable_auto_();
    *value.mutable_requested() = request->limit();
    *value.mutable_after() = request->limit();
    Finish(*request, change);
    return grpc::Status::OK;
  }

  grpc::Status SetMemsAllowed(grpc::ServerContext* context,
                              const v1::SetMemsAllowedRequest* request,
                              v1::SetMemsAllowedResponse* response) override {
    const grpc::Status entered = Begin("SetMemsAllowed", *request, *context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->last_mems = *request;
    v1::Change& change = *response->mutable_change();
    change.set_kind(v1::CHANGE_KIND_SET);
    v1::ValueChange& value = *change.add_values();
    value.set_scope("processes/" + request->process());
    value.set_tunable("mems_allowed");
    value.mutable_before()->mutable_auto_();
    value.mutable_after()->set_choice("0");
    Finish(*request, change);
    return grpc::Status::OK;
  }

 private:
  static v1::Tunable MakeTunable(const std::string& subject,
                                 const std::string& name,
                                 const v1::Value& value) {
    v1::Tunable tunable;
    tunable.set_name(subject + "/tunables/" + name);
    tunable.set_help("Multiplies each zone's computed batch.");
    *tunable.mutable_value() = value;
    tunable.mutable_default_value()->set_real(1);
    tunable.mutable_range()->set_text("0.25 to 8");
    tunable.set_writable(name != "pageset.policy");
    if (!tunable.writable()) tunable.set_read_only_reason("fixed here");
    tunable.set_origin(v1::ORIGIN_DEFAULT);
    tunable.set_reversible(true);
    return tunable;
  }

  // What the real daemon checks before all else.
  template <typename Request>
  grpc::Status Begin(const std::string& method, const Request& request,
                     const grpc::ServerContext& context) {
    if (context.deadline() == std::chrono::system_clock::time_point::max()) {
      return MakeError(grpc::StatusCode::INVALID_ARGUMENT, "no deadline",
                       "DEADLINE_MISSING");
    }
    const grpc::Status entered =
        state_->Enter(method, request.parent(), context);
    if (!entered.ok()) return entered;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!request.etag().empty() && request.etag() != state_->etag) {
      return MakeError(
          grpc::StatusCode::ABORTED,
          "the tunables changed since etag \"" + request.etag() + "\"",
          "ETAG_MISMATCH");
    }
    return grpc::Status::OK;
  }

  static void AddEffects(v1::Change& change) {
    for (int node = 0; node < 2; ++node) {
      v1::Effect& effect = *change.add_effects();
      effect.set_where("nodes/" + std::to_string(node) + "/zones/Normal");
      effect.set_what("batch");
      effect.set_unit("pages");
      effect.set_before(63);
      effect.set_after(126);
    }
  }

  template <typename Request>
  void Finish(const Request& request, v1::Change& change) {
    if (!request.validate_only()) {
      ++state_->generation;
      state_->etag = std::to_string(state_->generation) + "-cd";
      change.set_name(request.parent() + "/changes/" +
                      std::to_string(state_->generation));
    }
    change.set_state(request.validate_only() ? v1::CHANGE_STATE_PLANNED
                                             : v1::CHANGE_STATE_APPLIED);
    change.set_generation(state_->generation);
    change.set_etag(state_->etag);
    change.set_reason(request.reason());
    change.set_request_id(request.request_id());
  }

  FakeState* const state_;
};

}  // namespace

std::unique_ptr<v1::TuningService::Service> MakeTuningService(
    FakeState* state) {
  return std::make_unique<FakeTuning>(state);
}

}  // namespace memtuned::ctl
