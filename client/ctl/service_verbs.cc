// SPDX-License-Identifier: Apache-2.0
// The verbs health and version: about the daemon itself.
#include <map>
#include <nlohmann/json.hpp>

#include "client/ctl/labels.h"
#include "client/ctl/output.h"
#include "client/ctl/paging.h"
#include "client/ctl/session.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Json = nlohmann::ordered_json;

// The daemon's name in the health protocol for a subject.
std::string HealthName(const std::string& subject) {
  return "memtuned.v1/" + subject;
}

// What one service of the health protocol answered.
struct Health {
  std::string subject;  // "" is the daemon itself
  HealthCheckResponse::ServingStatus status = HealthCheckResponse::UNKNOWN;
  std::string degraded;  // why, "" when it is not
};

absl::StatusOr<Health> CheckHealth(Connection& connection,
                                   const std::string& subject) {
  HealthCheckRequest request;
  if (!subject.empty()) request.set_service(HealthName(subject));
  auto response = connection.Call(&grpc::health::v1::Health::Stub::Check,
                                  connection.health(), request);
  if (response.ok()) return Health{subject, response->status(), ""};
  // The protocol's way to say that it does not know the service.
  if (absl::IsNotFound(response.status())) {
    return Health{subject, HealthCheckResponse::SERVICE_UNKNOWN, ""};
  }
  return response.status();
}

Cell HealthCell(HealthCheckResponse::ServingStatus status) {
  switch (status) {
    case HealthCheckResponse::SERVING:
      return {"serving", Tone::kGood};
    case HealthCheckResponse::NOT_SERVING:
      return {"not serving", Tone::kBad};
    case HealthCheckResponse::SERVICE_UNKNOWN:
      return {"not known to the daemon", Tone::kBad};
    default:
      return {"unknown", Tone::kWarning};
  }
}

void PrintHealth(Session& session, const std::vector<Health>& all,
                 const std::string& target) {
  if (session.for_scripts()) {
    Json rows = Json::array();
    for (const Health& health : all) {
      rows.push_back(
          {{"subject", health.subject},
           {"status", HealthCheckResponse::ServingStatus_Name(health.status)}});
      if (!health.degraded.empty()) {
        rows.back()["degraded_reason"] = health.degraded;
      }
    }
    PrintDocument(session.out(),
                  Json{{"target", target}, {"health", rows}}.dump(1),
                  session.invocation().output() == OutputFormat::kYaml);
    return;
  }
  session.PrintHeading("daemon", {});
  TablePrinter table({{"SUBJECT"}, {"HEALTH"}});
  for (const Health& health : all) {
    Cell cell = HealthCell(health.status);
    if (!health.degraded.empty()) {
      cell = {cell.text + ", degraded: " + health.degraded, Tone::kBad};
    }
    table.AddRow({health.subject.empty() ? "daemon" : health.subject, cell});
  }
  session.PrintTable(table);
}

}  // namespace

absl::StatusOr<ExitCode> RunHealth(Session& session) {
  auto connection = session.Connect();
  if (!connection.ok()) return connection.status();
  std::vector<std::string> asked = {""};
  auto subjects = session.Subjects();
  if (!subjects.ok()) return subjects.status();
  asked.insert(asked.end(), subjects->begin(), subjects->end());

  // The health protocol has no words; those that may not list see none.
  std::map<std::string, std::string> reasons;
  if (auto list = ListSubjects(**connection); list.ok()) {
    for (const v1::Subject& subject : list->subjects()) {
      reasons[subject.name()] = subject.degraded_reason();
    }
  }
  std::vector<Health> all;
  ExitCode outcome = ExitCode::kDone;
  for (const std::string& subject : asked) {
    auto health = CheckHealth(**connection, subject);
    if (!health.ok()) return health.status();
    if (health->status != HealthCheckResponse::SERVING) {
      outcome = ExitCode::kFindings;
    }
    all.push_back(*health);
    if (const auto reason = reasons.find(subject); reason != reasons.end()) {
      all.back().degraded = reason->second;
    }
  }
  PrintHealth(session, all, (*connection)->target().Address());
  return outcome;
}

absl::StatusOr<ExitCode> RunVersion(Session& session) {
  std::string daemon;
  absl::Status failure;
  std::string target;
  const bool client_only = session.invocation().Has("--version");
  if (!client_only) {
    auto connection = session.Connect();
    auto list =
        connection.ok()
            ? ListSubjects(**connection)
            : absl::StatusOr<v1::ListSubjectsResponse>(connection.status());
    if (connection.ok()) target = (*connection)->target().Address();
    if (list.ok()) daemon = list->daemon_version();
    failure = list.status();
  }
  if (session.for_scripts()) {
    Json versions = {{"client", {{"version", MEMTUNECTL_VERSION}}}};
    if (failure.ok() && !client_only) {
      versions["daemon"] = {{"version", daemon}, {"target", target}};
    } else if (!failure.ok()) {
      versions.update(Json::parse(ErrorJson(failure)));
    }
    PrintDocument(session.out(), versions.dump(1),
                  session.invocation().output() == OutputFormat::kYaml);
    return ExitCodeOf(failure);
  }
  session.out() << "memtunectl " << MEMTUNECTL_VERSION << '\n';
  if (!failure.ok()) return failure;
  if (!client_only) {
    session.out() << "memtuned   " << daemon << " at " << target << '\n';
  }
  return ExitCode::kDone;
}

}  // namespace memtuned::ctl
