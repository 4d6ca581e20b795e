// SPDX-License-Identifier: Apache-2.0
// The verb processes: who is attached to a pool and holds how much.
#include <google/protobuf/util/time_util.h>

#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/rates.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

void PrintProcesses(Session& session, const std::string& subject,
                    const v1::ListProcessesResponse& response) {
  const Formatter& format = session.format();
  const int count = response.processes_size();
  std::vector<std::string> parts = {std::to_string(count) +
                                    (count == 1 ? " process" : " processes")};
  for (std::string& part : session.SampleParts(response.sample())) {
    parts.push_back(std::move(part));
  }
  session.PrintHeading(subject, parts);
  TablePrinter table({{"ID"},
                      {"PID", Align::kRight},
                      {"UID", Align::kRight},
                      {"STATE"},
                      {"THREADS", Align::kRight},
                      {"HOLDS", Align::kRight},
                      {"MEMS-ALLOWED", Align::kLeft, true},
                      {"ATTACHED", Align::kRight},
                      {"COMMAND", Align::kLeft, true}});
  for (const v1::Process& process : response.processes()) {
    const double attached =
        process.has_attach_time()
            ? SecondsBetween(process.attach_time(), response.sample().time())
            : 0;
    table.AddRow({LastPart(process.name()), std::to_string(process.pid()),
                  std::to_string(process.uid()),
                  ProcessStateCell(process.state()),
                  std::to_string(process.threads()),
                  format.Bytes(process.allocated_bytes()),
                  NumberRanges({process.mems_allowed().begin(),
                                process.mems_allowed().end()}),
                  process.has_attach_time() ? format.Age(attached) : kAbsent,
                  process.command()});
  }
  session.PrintTable(table);
}

}  // namespace

absl::StatusOr<ExitCode> RunProcesses(Session& session) {
  return ForEachSubject(
      session,
      [&](Connection& connection, const std::string& subject) -> absl::Status {
        v1::ListProcessesRequest request;
        request.set_parent(subject);
        auto response =
            CallAllPages(connection, &v1::StatsService::Stub::ListProcesses,
                         connection.stats(), request);
        if (!response.ok()) return response.status();
        if (session.for_scripts()) {
          session.PrintMessage(*response);
        } else {
          PrintProcesses(session, subject, *response);
        }
        return absl::OkStatus();
      });
}

}  // namespace memtuned::ctl
