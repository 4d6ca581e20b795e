// SPDX-License-Identifier: Apache-2.0
// Reads are answered from the subject itself, now. Changes go through
// Mutate: check, take the turn, look up the request id, apply, remember, log,
// and wait for a sample that shows the change.
#include "daemon/rpc/tuning_service.h"

#include <chrono>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/log.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/names.h"
#include "daemon/rpc/paging.h"
#include "daemon/rpc/tuning_checks.h"

namespace memtuned {
namespace {

// Peer credentials and certificates name callers in a later release.
constexpr char kCaller[] = "local";
constexpr std::chrono::milliseconds kMaxRefresh(500);

const char* KindName(v1::ChangeKind kind) {
  switch (kind) {
    case v1::CHANGE_KIND_SET:
      return "set";
    case v1::CHANGE_KIND_RECALCULATE:
      return "recalculate";
    case v1::CHANGE_KIND_DRAIN:
      return "drain";
    default:
      return "change";
  }
}

absl::StatusOr<ServedSubject> FindSubject(const Registry& registry,
                                          const std::string& parent) {
  const auto name = ParseName(parent, "parent", NameDepth::kSubject);
  if (!name.ok()) return name.status();
  return registry.Find(name->subject);
}

absl::Status CheckDeadline(const grpc::ServerContext& context) {
  if (HasDeadline(context)) return absl::OkStatus();
  return WithReason(
      absl::InvalidArgumentError(
          "the call has no deadline; calls that change something need one, "
          "so that a lost answer is noticed"),
      "DEADLINE_MISSING");
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

void LogChange(const std::string& subject, const v1::Change& change) {
  LogFields fields = {{"kind", KindName(change.kind())},
                      {"subject", subject},
                      {"generation", absl::StrCat(change.generation())},
                      {"caller", change.caller()},
                      {"reason", change.reason()},
                      {"request_id", change.request_id()}};
  for (const v1::ValueChange& value : change.values()) {
    const auto text = [](const v1::Value& v) {
      return ValueText(FromProto(v).value_or(AutoValue{}));
    };
    fields.emplace_back(
        value.tunable(),
        absl::StrCat(text(value.before()), " -> ", text(value.after())));
  }
  LogEvent(LogLevel::kInfo, "change", fields);
}

void LogRefusal(const std::string& parent, v1::ChangeKind kind,
                const absl::Status& status) {
  LogEvent(
      LogLevel::kInfo, "change-refused",
      {{"kind", KindName(kind)},
       {"subject", parent.substr(0, 64)},
       {"caller", kCaller},
       {"error", status.ToString(absl::StatusToStringMode::kWithNoExtraData)}});
}

}  // namespace

TuningService::TuningService(const Registry* registry) : registry_(registry) {
  for (const ServedSubject& served : registry->subjects()) {
    logs_[served.subject->name()] = std::make_unique<RequestLog>();
  }
}

grpc::Status TuningService::ListTunables(grpc::ServerContext*,
                                         const v1::ListTunablesRequest* request,
                                         v1::ListTunablesResponse* response) {
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

grpc::Status TuningService::GetTunable(grpc::ServerContext*,
                                       const v1::GetTunableRequest* request,
                                       v1::GetTunableResponse* response) {
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
absl::Status TuningService::Mutate(
    grpc::ServerContext* context, const Request& request, v1::ChangeKind kind,
    Response& response,
    const std::function<absl::Status(const ServedSubject&,
                                     const ChangeContext&)>& apply) {
  const absl::Status has_deadline = CheckDeadline(*context);
  if (!has_deadline.ok()) return has_deadline;
  const auto served = FindSubject(*registry_, request.parent());
  if (!served.ok()) return served.status();
  FieldErrors errors;
  CheckTexts(request.reason(), request.request_id(), request.etag(), errors);
  if (!errors.empty()) return errors.ToStatus();
  const ChangeContext change{.caller = kCaller,
                             .reason = request.reason(),
                             .request_id = request.request_id(),
                             .etag = request.etag(),
                             .validate_only = request.validate_only()};

  RequestLog& log = *logs_.at(served->subject->name());
  const auto turn = log.Enter(DeadlineOf(*context));
  if (!turn.ok()) return turn.status();
  const std::string content =
      absl::StrCat(KindName(kind), " ", request.SerializeAsString());
  if (!change.request_id.empty()) {
    const auto answered = log.Find(change.request_id, content);
    if (!answered.ok()) return answered.status();
    if (!answered->empty()) {
      response.ParseFromString(*answered);
      return absl::OkStatus();
    }
  }
  const absl::Status applied = apply(*served, change);
  if (!applied.ok()) return applied;
  if (change.validate_only) return absl::OkStatus();
  if (!change.request_id.empty()) {
    log.Store(change.request_id, content, response.SerializeAsString());
  }
  LogChange(served->subject->name(), response.change());
  served->sampler->Refresh(std::min(
      DeadlineOf(*context), std::chrono::steady_clock::now() + kMaxRefresh));
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
    const absl::Status risks = CheckRisks(request->accept_risks());
    if (!risks.ok()) return risks;
    auto assignments = ReadAssignments(*request, *served.subject);
    if (!assignments.ok()) return assignments.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_SET, record);
    const auto result = served.subject->Apply(*assignments, change);
    if (!result.ok()) return Explain(result.status(), *served.subject);
    EndChange(served.subject->name(), *result, record);
    return absl::OkStatus();
  };
  const absl::Status status =
      Mutate(context, *request, v1::CHANGE_KIND_SET, *response, apply);
  if (!status.ok()) {
    LogRefusal(request->parent(), v1::CHANGE_KIND_SET, status);
  }
  return ToGrpcStatus(status);
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
    if (!result.ok()) return Explain(result.status(), *served.subject);
    EndChange(served.subject->name(), *result, record);
    return absl::OkStatus();
  };
  const absl::Status status =
      Mutate(context, *request, v1::CHANGE_KIND_RECALCULATE, *response, apply);
  if (!status.ok()) {
    LogRefusal(request->parent(), v1::CHANGE_KIND_RECALCULATE, status);
  }
  return ToGrpcStatus(status);
}

grpc::Status TuningService::Drain(grpc::ServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) {
  const auto apply = [&](const ServedSubject& served,
                         const ChangeContext& change) -> absl::Status {
    if (request->has_max_duration()) {
      return NotYet("max_duration", "drains of the host come later");
    }
    const absl::Status risks = CheckRisks(request->accept_risks());
    if (!risks.ok()) return risks;
    const auto scope =
        ReadScope(request->scope(), true, served, DeadlineOf(*context));
    if (!scope.ok()) return scope.status();
    v1::Change& record = *response->mutable_change();
    StartChange(change, v1::CHANGE_KIND_DRAIN, record);
    const auto result = served.subject->Drain(*scope, change);
    if (!result.ok()) return Explain(result.status(), *served.subject);
    if (!result->not_drained.empty() && !change.validate_only) {
      record.set_state(v1::CHANGE_STATE_PARTIAL);
    }
    EndChange(served.subject->name(), result->change, record);
    *response->mutable_result() = ToProto(served.subject->name(), *result);
    return absl::OkStatus();
  };
  const absl::Status status =
      Mutate(context, *request, v1::CHANGE_KIND_DRAIN, *response, apply);
  if (!status.ok()) {
    LogRefusal(request->parent(), v1::CHANGE_KIND_DRAIN, status);
  }
  return ToGrpcStatus(status);
}

}  // namespace memtuned
