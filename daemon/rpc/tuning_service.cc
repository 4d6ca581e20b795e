// SPDX-License-Identifier: Apache-2.0
// Reads are answered from the subject itself, now. Changes go through
// Mutate: through the gate, check, take the turn, look up the request id,
// apply, audit, remember, and wait for a sample that shows the change.
#include "daemon/rpc/tuning_service.h"

#include <chrono>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/change_audit.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/names.h"
#include "daemon/rpc/paging.h"
#include "daemon/rpc/tuning_checks.h"

namespace memtuned {
namespace {

constexpr std::chrono::milliseconds kMaxRefresh(500);

absl::StatusOr<ServedSubject> FindSubject(const Registry& registry,
                                          const std::string& parent) {
  const auto name = ParseName(parent, "parent", NameDepth::kSubject);
  if (!name.ok()) return name.status();
  return registry.Find(name->subject);
}

void StartChange(const ChangeContext& context, v1::ChangeKind kind,
                 v1::Change& change) {
  change.set_kind(kind);
  change.set_state(context.validate_only ? v1::CHANGE_STATE_PLANNED
                                         : v1::CHANGE_STATE_APPLIED);
  change.set_caller(context.caller);
  change.set_reason(context.reason);
  change.set_request_id(context.request_id);
  *change.mutable_create_time() = ToTimestamp(UnixNow());
}

void EndChange(const std::string& subject, const ChangeResult& result,
               v1::Change& change) {
  if (change.state() != v1::CHANGE_STATE_PLANNED) {
    *change.mutable_complete_time() = ToTimestamp(UnixNow());
  }
  FillChange(subject, result, change);
}

}  // namespace

TuningService::TuningService(const Registry* registry, Gate* gate)
    : registry_(registry), gate_(gate) {
  for (const ServedSubject& served : registry->subjects()) {
    changes_[served.subject->name()] = std::make_unique<SubjectChanges>();
  }
}

grpc::Status TuningService::ListTunables(grpc::ServerContext* context,
                                         const v1::ListTunablesRequest* request,
                                         v1::ListTunablesResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "TuningService/ListTunables", .resource = request->parent()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto size = PageSize(request->page_size(), 100, 1000);
  if (!size.ok()) return ToGrpcStatus(size.status());
  const std::string key = absl::StrCat("tunables ", request->parent());
  const auto from = ParsePageToken(request->page_token(), key);
  if (!from.ok()) return ToGrpcStatus(from.status());
  const auto served = FindSubject(*registry_, request->parent());
  if (!served.ok()) return ToGrpcStatus(served.status());

  // The version first: values read later make the etag old, never too new.
  const SubjectVersion version = served->subject->Version();
  const std::vector<TunableState> states = served->subject->Tunables();
  size_t at = static_cast<size_t>(from->first);
  for (; at < states.size() && response->tunables_size() < *size; ++at) {
    *response->add_tunables() = ToProto(served->subject->name(), states[at]);
  }
  if (at < states.size()) {
    response->set_next_page_token(
        MakePageToken(key, {static_cast<int64_t>(at), 0}));
  }
  response->set_etag(version.etag);
  response->set_generation(version.generation);
  return grpc::Status::OK;
}

grpc::Status TuningService::GetTunable(grpc::ServerContext* context,
                                       const v1::GetTunableRequest* request,
                                       v1::GetTunableResponse* response) {
  const auto caller = gate_->Admit(
      *context,
      {.method = "TuningService/GetTunable", .resource = request->name()});
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto name = ParseName(request->name(), "name", NameDepth::kTunable);
  if (!name.ok()) return ToGrpcStatus(name.status());
  const auto served = registry_->Find(name->subject);
  if (!served.ok()) return ToGrpcStatus(served.status());

  const SubjectVersion version = served->subject->Version();
  std::vector<std::string> known;
  for (const TunableState& state : served->subject->Tunables()) {
    known.push_back(state.def->name);
    if (state.def->name != name->tunable) continue;
    *response->mutable_tunable() = ToProto(name->subject, state);
    response->set_etag(version.etag);
    response->set_generation(version.generation);
    return grpc::Status::OK;
  }
  return ToGrpcStatus(WithReason(
      absl::NotFoundError(absl::StrCat(name->subject, " has no tunable ",
                                       Quoted(name->tunable), "; it has ",
                                       Listed(known))),
      "NOT_FOUND", {{"tunable", name->tunable}}));
}

template <class Request, class Response>
grpc::Status TuningService::Mutate(grpc::ServerContext* context,
                                   const char* method, const Request& request,
                                   Response& response, const Apply& apply) {
  const CallInfo call{.method = method,
                      .resource = request.parent(),
                      .request_id = request.request_id(),
                      .reason = request.reason()};
  const auto caller = gate_->Admit(*context, call);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status status =
      MutateAdmitted(*context, *caller, call, request, response, apply);
  if (!status.ok()) {
    gate_->Audit(*caller, call, "refused",
                 {{"error", status.ToString(
                                absl::StatusToStringMode::kWithNoExtraData)}});
  }
  return ToGrpcStatus(status);
}

template <class Request, class Response>
absl::Status TuningService::MutateAdmitted(const grpc::ServerContext& context,
                                           const Caller& caller,
                                           const CallInfo& call,
                                           const Request& request,
                                           Response& response,
                                           const Apply& apply) {
  const auto served = FindSubject(*registry_, request.parent());
  if (!served.ok()) return served.status();
  FieldErrors errors;
  CheckTexts(request.reason(), request.request_id(), request.etag(), errors);
  if (!errors.empty()) return errors.ToStatus();
  const ChangeContext change{.caller = caller.Text(),
                             .reason = request.reason(),
                             .request_id = request.request_id(),
                             .etag = request.etag(),
                             .validate_only = request.validate_only()};

  SubjectChanges& changes = *changes_.at(served->subject->name());
  const auto turn = changes.log.Enter(DeadlineOf(context));
  if (!turn.ok()) return turn.status();
  const RequestLog::Request logged{
      .caller = change.caller,
      .id = change.request_id,
      .content = absl::StrCat(call.method, " ", request.SerializeAsString())};
  const auto answered = changes.log.Find(logged);
  if (!answered.ok()) return answered.status();
  if (!answered->empty()) {
    response.ParseFromString(*answered);
    gate_->Audit(caller, call, "repeated", AuditFieldsOf(response));
    return absl::OkStatus();
  }
  const absl::Status applied = apply(*served, change);
  if (!applied.ok()) return Explain(applied, *served->subject, changes.last);
  gate_->Audit(caller, call, change.validate_only ? "planned" : "applied",
               AuditFieldsOf(response));
  if (change.validate_only) return absl::OkStatus();
  changes.log.Store(logged, response.SerializeAsString());
  changes.last = {change.caller, response.change().generation()};
  served->sampler->Refresh(std::min(
      DeadlineOf(context), std::chrono::steady_clock::now() + kMaxRefresh));
  return absl::OkStatus();
}

grpc::Status TuningService::SetTunables(grpc::ServerContext* context,
                                        const v1::SetTunablesRequest* request,
                                        v1::SetTunablesResponse* response) {
  const auto apply = [&](const ServedSubject& served,
                         const ChangeContext& change) -> absl::Status {
    if (request->has_confirm_within()) {
      return NotYet("confirm_within",
                    "changes that revert unless confirmed come later");
    }
    absl::Status risks = CheckRisks(request->accept_risks());
    if (!risks.ok()) return risks;
    auto assignments = ReadAssignments(*request, *served.subject);
    if (!assignments.ok()) return assignments.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_SET, record);
    const auto result = served.subject->Apply(*assignments, change);
    if (!result.ok()) return result.status();
    EndChange(served.subject->name(), *result, record);
    return absl::OkStatus();
  };
  return Mutate(context, "TuningService/SetTunables", *request, *response,
                apply);
}

grpc::Status TuningService::Recalculate(grpc::ServerContext* context,
                                        const v1::RecalculateRequest* request,
                                        v1::RecalculateResponse* response) {
  const auto apply = [&](const ServedSubject& served,
                         const ChangeContext& change) -> absl::Status {
    const auto scope =
        ReadScope(request->scope(), false, served, DeadlineOf(*context));
    if (!scope.ok()) return scope.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_RECALCULATE, record);
    const auto result = served.subject->Recalculate(*scope, change);
    if (!result.ok()) return result.status();
    EndChange(served.subject->name(), *result, record);
    return absl::OkStatus();
  };
  return Mutate(context, "TuningService/Recalculate", *request, *response,
                apply);
}

grpc::Status TuningService::Drain(grpc::ServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) {
  const auto apply = [&](const ServedSubject& served,
                         const ChangeContext& change) -> absl::Status {
    if (request->has_max_duration()) {
      return NotYet("max_duration", "drains of the host come later");
    }
    absl::Status risks = CheckRisks(request->accept_risks());
    if (!risks.ok()) return risks;
    const auto scope =
        ReadScope(request->scope(), true, served, DeadlineOf(*context));
    if (!scope.ok()) return scope.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_DRAIN, record);
    const auto result = served.subject->Drain(*scope, change);
    if (!result.ok()) return result.status();
    if (!result->not_drained.empty() && !change.validate_only) {
      record.set_state(v1::CHANGE_STATE_PARTIAL);
    }
    EndChange(served.subject->name(), result->change, record);
    *response->mutable_result() = ToProto(served.subject->name(), *result);
    return absl::OkStatus();
  };
  return Mutate(context, "TuningService/Drain", *request, *response, apply);
}

grpc::Status TuningService::SetProcessLimit(
    grpc::ServerContext* context, const v1::SetProcessLimitRequest* request,
    v1::SetProcessLimitResponse* response) {
  const auto apply = [&](const ServedSubject& served,
                         const ChangeContext& change) -> absl::Status {
    const auto limit = ReadProcessLimit(*request);
    if (!limit.ok()) return limit.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_SET, record);
    const auto result =
        served.subject->SetProcessLimit(limit->process, limit->value, change);
    if (!result.ok()) return result.status();
    EndChange(served.subject->name(), *result, record);
    return absl::OkStatus();
  };
  return Mutate(context, "TuningService/SetProcessLimit", *request, *response,
                apply);
}

grpc::Status TuningService::SetMemsAllowed(
    grpc::ServerContext* context, const v1::SetMemsAllowedRequest* request,
    v1::SetMemsAllowedResponse* response) {
  const auto apply = [&](const ServedSubject& served,
                         const ChangeContext& change) -> absl::Status {
    const auto mems = ReadProcessMems(*request);
    if (!mems.ok()) return mems.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_SET, record);
    const auto result =
        served.subject->SetMemsAllowed(mems->process, mems->nodes, change);
    if (!result.ok()) return result.status();
    EndChange(served.subject->name(), *result, record);
    return absl::OkStatus();
  };
  return Mutate(context, "TuningService/SetMemsAllowed", *request, *response,
                apply);
}

}  // namespace memtuned
