// SPDX-License-Identifier: Apache-2.0
// The verb tunables: all of them in a table, or one with everything about it.
#include "client/ctl/assignment.h"
#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

std::vector<std::string> Parts(int64_t generation, const std::string& etag) {
  return {"generation " + std::to_string(generation), "etag \"" + etag + "\""};
}

Cell OriginCell(v1::Origin origin) {
  const bool foreign = origin == v1::ORIGIN_FOREIGN;
  return {OriginText(origin), foreign ? Tone::kWarning : Tone::kPlain};
}

std::string WritableText(const v1::Tunable& tunable) {
  if (tunable.writable()) return "yes";
  return tunable.read_only_reason().empty()
             ? "no"
             : "no: " + tunable.read_only_reason();
}

void PrintList(Session& session, const std::string& subject,
               const v1::ListTunablesResponse& response) {
  session.PrintHeading(subject, Parts(response.generation(), response.etag()));
  std::vector<Column> columns = {{"TUNABLE"},
                                 {"VALUE", Align::kRight},
                                 {"UNIT"},
                                 {"DEFAULT", Align::kRight},
                                 {"ALLOWED", Align::kLeft, true},
                                 {"ORIGIN"},
                                 {"WRITABLE", Align::kLeft, true}};
  if (session.wide()) {
    columns.push_back({"KERNEL-NAME"});
    columns.push_back({"HELP"});
  }
  TablePrinter table(columns);
  for (const v1::Tunable& tunable : response.tunables()) {
    const std::string value = ValueText(tunable.value());
    const bool changed = value != ValueText(tunable.default_value());
    std::vector<Cell> cells = {LastPart(tunable.name()),
                               {value, changed ? Tone::kWarning : Tone::kPlain},
                               tunable.unit(),
                               ValueText(tunable.default_value()),
                               tunable.range().text(),
                               OriginCell(tunable.origin()),
                               WritableText(tunable),
                               tunable.kernel_name(),
                               tunable.help()};
    cells.resize(columns.size(), Cell(""));
    table.AddRow(std::move(cells));
  }
  session.PrintTable(table);
}

void PrintOne(Session& session, const std::string& subject,
              const v1::GetTunableResponse& response) {
  const v1::Tunable& tunable = response.tunable();
  session.PrintHeading(subject, Parts(response.generation(), response.etag()));
  const std::string unit = tunable.unit().empty() ? "" : " " + tunable.unit();
  std::string pairs;
  for (const std::string& pair : tunable.paired_with()) {
    pairs += (pairs.empty() ? "" : ", ") + pair;
  }
  auto line = [&](const char* label, const std::string& text) {
    const std::string padded = std::string(label) + "            ";
    session.out() << padded.substr(0, 12) << (text.empty() ? kAbsent : text)
                  << '\n';
  };
  line("tunable", LastPart(tunable.name()));
  line("value", ValueText(tunable.value()) + unit);
  line("default", ValueText(tunable.default_value()) + unit);
  line("allowed", tunable.range().text());
  line("origin", OriginText(tunable.origin()));
  line("changed",
       tunable.changed_generation() == 0
           ? "never"
           : "in generation " + std::to_string(tunable.changed_generation()));
  line("writable", WritableText(tunable));
  line("reversible", tunable.reversible() ? "yes" : "no");
  line("kernel", tunable.kernel_name());
  if (!pairs.empty()) line("set with", pairs);
  line("help", tunable.help());
}

absl::Status ReadAll(Session& session, Connection& connection,
                     const std::string& subject) {
  v1::ListTunablesRequest request;
  request.set_parent(subject);
  auto response =
      CallAllPages(connection, &v1::TuningService::Stub::ListTunables,
                   connection.tuning(), request);
  if (!response.ok()) return response.status();
  if (session.for_scripts()) {
    session.PrintMessage(*response);
  } else {
    PrintList(session, subject, *response);
  }
  return absl::OkStatus();
}

absl::Status ReadOne(Session& session, Connection& connection,
                     const std::string& subject, const std::string& name) {
  v1::GetTunableRequest request;
  request.set_name(subject + "/tunables/" + name);
  auto response = connection.Call(&v1::TuningService::Stub::GetTunable,
                                  connection.tuning(), request);
  if (!response.ok()) return WithNearestTunable(response.status(), name);
  if (session.for_scripts()) {
    session.PrintMessage(*response);
  } else {
    PrintOne(session, subject, *response);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunTunables(Session& session) {
  const std::vector<std::string>& names = session.invocation().arguments;
  return ForEachSubject(
      session, [&](Connection& connection, const std::string& subject) {
        return names.empty() ? ReadAll(session, connection, subject)
                             : ReadOne(session, connection, subject, names[0]);
      });
}

}  // namespace memtuned::ctl
