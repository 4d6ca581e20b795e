// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/gate.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/errors.h"
#include "daemon/rpc/peer.h"

namespace memtuned {
namespace {

constexpr size_t kMaxAuditedText = 256;

// "pools/default" of "pools/default/nodes/0".
std::string SubjectOf(const std::string& resource) {
  const size_t slash = resource.find('/');
  if (slash == std::string::npos) return resource;
  return resource.substr(0, resource.find('/', slash + 1));
}

LogFields AuditFields(const Caller* caller, const CallInfo& call,
                      const std::string& decision) {
  LogFields fields = {{"caller", caller ? caller->Text() : "unknown"}};
  if (caller != nullptr && caller->kind == Caller::Kind::kUnix) {
    fields.emplace_back("gid", absl::StrCat(caller->gid));
    fields.emplace_back("pid", absl::StrCat(caller->pid));
  }
  fields.emplace_back("method", call.method);
  fields.emplace_back("subject",
                      SubjectOf(call.resource).substr(0, kMaxAuditedText));
  fields.emplace_back("decision", decision);
  fields.emplace_back("request_id", call.request_id.substr(0, kMaxAuditedText));
  fields.emplace_back("reason", call.reason.substr(0, kMaxAuditedText));
  return fields;
}

// A method that the table lacks is nobody's.
absl::Status NoRule(const std::string& method) {
  return absl::PermissionDeniedError(absl::StrCat(method, " has no rule"));
}

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace

Gate::Gate(AuditLog* audit, RpcObserver* observer, int mutations_per_minute)
    : audit_(audit), observer_(observer), budget_(mutations_per_minute) {
  SetGrants({});
}

void Gate::SetGrants(std::vector<RoleGrant> grants) {
  auto roles = std::make_shared<const Roles>(std::move(grants), geteuid());
  MutexLock lock(mutex_);
  roles_ = std::move(roles);
}

void Gate::Write(const LogFields& fields) {
  if (audit_ != nullptr) audit_->Write(fields);
}

std::shared_ptr<const Roles> Gate::roles() const {
  MutexLock lock(mutex_);
  return roles_;
}

absl::StatusOr<Caller> Gate::Admit(const grpc::ServerContext& context,
                                   const CallInfo& call) {
  const MethodRule* rule = FindMethod(call.method);
  if (rule == nullptr) return NoRule(call.method);
  auto caller = Identify(context, call);
  if (!caller.ok()) return caller.status();
  const absl::Status may = CheckRole(*caller, call, *rule);
  if (!may.ok()) return may;
  if (rule->mutates) {
    const absl::Status sound = CheckMutation(*caller, call, context);
    if (!sound.ok()) return sound;
  }
  return caller;
}

absl::StatusOr<Caller> Gate::Identify(const grpc::ServerContextBase& context,
                                      const CallInfo& call) {
  auto caller = CallerOf(context);
  if (caller.ok()) return caller;
  if (observer_ != nullptr) observer_->CallDenied();
  LogFields fields = AuditFields(nullptr, call, "denied");
  fields.emplace_back("error", MessageOf(caller.status()));
  Write(fields);
  return caller;
}

absl::Status Gate::CheckRole(const Caller& caller, const CallInfo& call,
                             const MethodRule& rule) {
  const std::string subject = SubjectOf(call.resource);
  const Role role =
      rule.on_subject ? roles()->On(caller, subject) : roles()->OnAny(caller);
  if (role >= rule.role) return absl::OkStatus();
  if (observer_ != nullptr) observer_->CallDenied();
  absl::Status denied =
      WithReason(absl::PermissionDeniedError(absl::StrCat(
                     call.method, " needs role ", RoleName(rule.role),
                     rule.on_subject ? " on " + Quoted(subject) : "", "; ",
                     Quoted(caller.Text()), " has ", RoleName(role))),
                 "ROLE_MISSING",
                 {{"caller", caller.Text()},
                  {"role", RoleName(role)},
                  {"role_needed", RoleName(rule.role)},
                  {"method", call.method},
                  {"subject", subject}});
  AuditRefusal(caller, call, "denied", denied,
               budget_.Take(caller.Text(), std::chrono::steady_clock::now()));
  return denied;
}

absl::Status Gate::CheckMutation(const Caller& caller, const CallInfo& call,
                                 const grpc::ServerContext& context) {
  const CallBudget::Answer budget =
      budget_.Take(caller.Text(), std::chrono::steady_clock::now());
  absl::Status status;
  if (budget.wait_seconds > 0) {
    status = WithRetryAfter(
        WithReason(absl::ResourceExhaustedError(
                       absl::StrCat(Quoted(caller.Text()),
                                    " has used up its changes of this minute")),
                   "TOO_MANY_CALLS", {{"caller", caller.Text()}}),
        budget.wait_seconds);
  } else if (!HasDeadline(context)) {
    status = WithReason(
        absl::InvalidArgumentError(
            "the call has no deadline; calls that change something need one, "
            "so that a lost answer is noticed"),
        "DEADLINE_MISSING");
  } else {
    return absl::OkStatus();
  }
  AuditRefusal(caller, call, "refused", status, budget);
  return status;
}

// A caller beyond its budget gets one line for the first such call, and the
// number of the rest with its next line: it must not fill the disk.
void Gate::AuditRefusal(const Caller& caller, const CallInfo& call,
                        const std::string& decision, const absl::Status& status,
                        const CallBudget::Answer& budget) {
  const bool over = budget.wait_seconds > 0;
  if (over && budget.refused > 1) return;
  LogFields fields = AuditFields(&caller, call, decision);
  fields.emplace_back("error", MessageOf(status));
  if (!over && budget.refused > 1) {
    fields.emplace_back("lines_left_out", absl::StrCat(budget.refused - 1));
  }
  Write(fields);
}

absl::Status Gate::AdmitToLibrary(const grpc::ServerContextBase& context,
                                  const std::string& path) {
  const MethodRule* rule = FindMethodByPath(path);
  if (rule == nullptr) return NoRule(path);
  const CallInfo call{.method = rule->name};
  const auto caller = Identify(context, call);
  if (!caller.ok()) return caller.status();
  return CheckRole(*caller, call, *rule);
}

bool Gate::MaySee(const Caller& caller, const std::string& subject) const {
  return roles()->On(caller, subject) >= Role::kViewer;
}

void Gate::Audit(const Caller& caller, const CallInfo& call,
                 const std::string& decision, const LogFields& more) {
  LogFields fields = AuditFields(&caller, call, decision);
  fields.insert(fields.end(), more.begin(), more.end());
  Write(fields);
}

}  // namespace memtuned
