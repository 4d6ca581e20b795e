// SPDX-License-Identifier: Apache-2.0
// The verbs that change a subject: set, recalculate, drain, limit, process.
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "client/ctl/assignment.h"
#include "client/ctl/change_text.h"
#include "client/ctl/connection.h"
#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/session.h"
#include "client/ctl/verbs.h"
#include "core/base/topology.h"

namespace memtuned::ctl {
namespace {

// The subject to change and the connection to do it through.
struct Aim {
  Connection* connection = nullptr;
  std::string subject;
};

absl::StatusOr<Aim> TakeAim(Session& session) {
  auto connection = session.Connect();
  if (!connection.ok()) return connection.status();
  auto subjects = session.Subjects();
  if (!subjects.ok()) return subjects.status();
  return Aim{*connection, subjects->front()};
}

// Fills what all requests have.
template <typename Request>
Request MakeRequest(const Invocation& invocation, const std::string& subject) {
  Request request;
  request.set_parent(subject);
  request.set_reason(invocation.Text("--reason"));
  request.set_etag(invocation.Text("--etag"));
  request.set_request_id(invocation.Text("--request-id"));
  request.set_validate_only(invocation.Has("--dry-run"));
  return request;
}

v1::Scope MakeScope(const Invocation& invocation) {
  v1::Scope scope;
  for (const int node : invocation.Numbers("--node")) scope.add_nodes(node);
  for (const std::string& zone : invocation.List("--zone")) {
    scope.add_zones(zone);
  }
  for (const int cpu : invocation.Numbers("--cpu")) scope.add_cpus(cpu);
  return scope;
}

void PrintChange(Session& session, const std::string& subject,
                 const v1::Change& change) {
  session.PrintHeading(subject, ChangeParts(change));
  for (const std::string& line :
       ChangeLines(change, session.format(), session.wide())) {
    session.out() << line << '\n';
  }
}

ExitCode OutcomeOf(const v1::Change& change) {
  return change.state() == v1::CHANGE_STATE_PARTIAL ? ExitCode::kPartial
                                                    : ExitCode::kDone;
}

// "10 -> 10"; "-" for a zone without a free block.
std::string OrderText(int before, int after) {
  auto text = [](int order) {
    return order < 0 ? std::string(kAbsent) : std::to_string(order);
  };
  return text(before) + " -> " + text(after);
}

void PrintDrainTable(Session& session, const v1::DrainResult& result) {
  const Formatter& format = session.format();
  TablePrinter table({{"ZONE"},
                      {"BEFORE", Align::kRight},
                      {"AFTER", Align::kRight},
                      {"LARGEST-FREE-ORDER"}});
  for (const v1::ZoneDrain& zone : result.zones()) {
    table.AddRow({ZoneLabel(zone.zone()), format.Count(zone.pages_before()),
                  format.Count(zone.pages_after()),
                  OrderText(zone.largest_free_order_before(),
                            zone.largest_free_order_after())});
  }
  session.PrintTable(table);
  if (!session.wide()) return;

  TablePrinter cpus(
      {{"ZONE"}, {"CPU", Align::kRight}, {"GAVE-BACK", Align::kRight}});
  for (const v1::ZoneDrain& zone : result.zones()) {
    for (const v1::CpuDrain& cpu : zone.cpus()) {
      cpus.AddRow({ZoneLabel(zone.zone()), std::to_string(cpu.cpu()),
                   format.Count(cpu.pages())});
    }
  }
  if (!cpus.empty()) session.PrintTable(cpus);
}

void PrintDrain(Session& session, const std::string& subject,
                const v1::DrainResponse& response) {
  int64_t before = 0, after = 0, lru = 0;
  for (const v1::ZoneDrain& zone : response.result().zones()) {
    before += zone.pages_before();
    after += zone.pages_after();
    lru += zone.lru_batch_pages();
  }
  const Formatter& format = session.format();
  const bool plan = response.change().state() == v1::CHANGE_STATE_PLANNED;
  std::vector<std::string> parts = ChangeParts(response.change());
  parts[0] = plan ? "plan only, nothing drained"
                  : format.Count(before - after) + " pages left pagesets";
  session.PrintHeading(subject, parts);
  PrintDrainTable(session, response.result());
  if (lru > 0) {
    session.out() << "lru batches " << format.Count(lru) << " pages moved on\n";
  }
  for (const std::string& text : response.result().not_drained()) {
    session.out() << Paint("not drained ", Tone::kWarning,
                           session.style().color)
                  << text << '\n';
  }
}

// How a verb ends whose response is a change and nothing more.
template <typename Response>
absl::StatusOr<ExitCode> ShowChange(Session& session,
                                    const std::string& subject,
                                    const absl::StatusOr<Response>& response) {
  if (!response.ok()) return response.status();
  if (session.for_scripts()) {
    session.PrintMessage(*response);
  } else {
    PrintChange(session, subject, response->change());
  }
  return OutcomeOf(response->change());
}

// The process that `text` names: by its id, as it is, or by its pid.
absl::StatusOr<std::string> FindProcess(Connection& connection,
                                        const std::string& subject,
                                        const std::string& text) {
  int pid = 0;
  if (!absl::SimpleAtoi(text, &pid)) return text;
  v1::ListProcessesRequest request;
  request.set_parent(subject);
  auto listed = CallAllPages(connection, &v1::StatsService::Stub::ListProcesses,
                             connection.stats(), request);
  if (!listed.ok()) return listed.status();
  std::vector<std::string> found;
  for (const v1::Process& process : listed->processes()) {
    if (process.pid() == pid) found.push_back(LastPart(process.name()));
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return absl::NotFoundError(subject + " has no process of pid " + text +
                               "; memtunectl processes shows them");
  }
  return absl::InvalidArgumentError("pid " + text + " is attached as " +
                                    absl::StrJoin(found, ", ") +
                                    "; give one of these");
}

absl::Status ReadNodes(const std::string& text,
                       v1::SetMemsAllowedRequest& request) {
  if (text == "all") {
    request.set_all_nodes(true);
    return absl::OkStatus();
  }
  const auto nodes = ParseNumbers(text, 0, kMaxNodeNumber);
  if (!nodes || nodes->empty()) {
    return absl::InvalidArgumentError(
        "nodes are '" + text +
        "'; allowed all, or numbers 0 to 1023 as in 0,2-3");
  }
  for (const int node : *nodes) request.add_nodes(node);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunSet(Session& session) {
  auto assignments = ParseAssignments(session.invocation().arguments);
  if (!assignments.ok()) return assignments.status();
  auto aim = TakeAim(session);
  if (!aim.ok()) return aim.status();

  auto request =
      MakeRequest<v1::SetTunablesRequest>(session.invocation(), aim->subject);
  for (const v1::Assignment& assignment : *assignments) {
    *request.add_assignments() = assignment;
  }
  auto response = aim->connection->Call(&v1::TuningService::Stub::SetTunables,
                                        aim->connection->tuning(), request);
  return ShowChange(session, aim->subject, response);
}

absl::StatusOr<ExitCode> RunRecalculate(Session& session) {
  auto aim = TakeAim(session);
  if (!aim.ok()) return aim.status();
  auto request =
      MakeRequest<v1::RecalculateRequest>(session.invocation(), aim->subject);
  *request.mutable_scope() = MakeScope(session.invocation());
  auto response = aim->connection->Call(&v1::TuningService::Stub::Recalculate,
                                        aim->connection->tuning(), request);
  return ShowChange(session, aim->subject, response);
}

absl::StatusOr<ExitCode> RunDrain(Session& session) {
  auto aim = TakeAim(session);
  if (!aim.ok()) return aim.status();
  auto request =
      MakeRequest<v1::DrainRequest>(session.invocation(), aim->subject);
  *request.mutable_scope() = MakeScope(session.invocation());
  auto response = aim->connection->Call(&v1::TuningService::Stub::Drain,
                                        aim->connection->tuning(), request);
  if (!response.ok()) return response.status();
  if (session.for_scripts()) {
    session.PrintMessage(*response);
  } else {
    PrintDrain(session, aim->subject, *response);
  }
  return response->result().not_drained().empty()
             ? OutcomeOf(response->change())
             : ExitCode::kPartial;
}

absl::StatusOr<ExitCode> RunLimit(Session& session) {
  const std::vector<std::string>& words = session.invocation().arguments;
  auto limit = ParseLimit(words[1]);
  if (!limit.ok()) return limit.status();
  auto aim = TakeAim(session);
  if (!aim.ok()) return aim.status();
  auto process = FindProcess(*aim->connection, aim->subject, words[0]);
  if (!process.ok()) return process.status();
  auto request = MakeRequest<v1::SetProcessLimitRequest>(session.invocation(),
                                                         aim->subject);
  request.set_process(*process);
  *request.mutable_limit() = *limit;
  auto response =
      aim->connection->Call(&v1::TuningService::Stub::SetProcessLimit,
                            aim->connection->tuning(), request);
  return ShowChange(session, aim->subject, response);
}

absl::StatusOr<ExitCode> RunProcess(Session& session) {
  const std::vector<std::string>& words = session.invocation().arguments;
  if (words[0] != "set-mems") {
    return absl::InvalidArgumentError("action is '" + words[0] +
                                      "'; allowed set-mems");
  }
  auto aim = TakeAim(session);
  if (!aim.ok()) return aim.status();
  auto request = MakeRequest<v1::SetMemsAllowedRequest>(session.invocation(),
                                                        aim->subject);
  if (absl::Status s = ReadNodes(words[2], request); !s.ok()) return s;
  auto process = FindProcess(*aim->connection, aim->subject, words[1]);
  if (!process.ok()) return process.status();
  request.set_process(*process);
  auto response =
      aim->connection->Call(&v1::TuningService::Stub::SetMemsAllowed,
                            aim->connection->tuning(), request);
  return ShowChange(session, aim->subject, response);
}

}  // namespace memtuned::ctl
