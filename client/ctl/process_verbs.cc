// SPDX-License-Identifier: Apache-2.0
// The verb processes: who is attached to a pool, how much each holds and may
// hold, and who is stopped in everybody's way.
#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/rates.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

using google::protobuf::util::TimeUtil;

double Seconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(TimeUtil::DurationToNanoseconds(duration)) * 1e-9;
}

// "stopped 12 s".
Cell StateCell(const v1::Process& process, const Formatter& format) {
  Cell cell = ProcessStateCell(process.state());
  if (process.has_stopped()) {
    cell.text += " " + format.Age(Seconds(process.stopped()));
  }
  if (process.holds_size() > 0) cell.tone = Tone::kBad;
  return cell;
}

// How long before the sample, "-" when it is not known.
std::string AgeText(bool known, const google::protobuf::Timestamp& time,
                    const v1::SampleInfo& sample, const Formatter& format) {
  return known ? format.Age(std::max(0.0, SecondsBetween(time, sample.time())))
               : std::string(kAbsent);
}

// "1.0 GiB"; with a star when it is the process's own.
std::string LimitText(const v1::Process& process, const Formatter& format) {
  const std::string text = process.has_limit_bytes()
                               ? format.Bytes(process.limit_bytes())
                               : std::string(kAbsent);
  return process.own_limit() ? text + "*" : text;
}

// "zone 0/Normal 12 s, tuning 3 s".
std::string HoldsText(const v1::Process& process, const Formatter& format) {
  std::string text;
  for (const v1::HeldLock& held : process.holds()) {
    text += (text.empty() ? "" : ", ") + held.lock();
    if (!held.where().empty()) text += " " + ZoneLabel(held.where());
    text += " " + format.Age(Seconds(held.stopped()));
  }
  return text.empty() ? kAbsent : text;
}

// Blocks of each order that is held: "0:12 3:1".
template <typename Blocks>
std::string BlocksText(const Blocks& blocks) {
  std::string text;
  for (int order = 0; order < blocks.size(); ++order) {
    if (blocks[order] == 0) continue;
    text += (text.empty() ? "" : " ") + std::to_string(order) + ":" +
            std::to_string(blocks[order]);
  }
  return text.empty() ? kAbsent : text;
}

void PrintNodes(Session& session, const v1::ListProcessesResponse& response) {
  const Formatter& format = session.format();
  TablePrinter table({{"ID"},
                      {"NODE", Align::kRight},
                      {"HOLDS", Align::kRight},
                      {"PURGEABLE", Align::kRight},
                      {"ON-OFFER", Align::kRight},
                      {"BLOCKS", Align::kLeft, true}});
  for (const v1::Process& process : response.processes()) {
    for (const v1::NodeHoldings& node : process.nodes()) {
      table.AddRow(
          {LastPart(process.name()), std::to_string(node.node()),
           format.Bytes(node.bytes()), format.Bytes(node.purgeable_bytes()),
           format.Bytes(node.offered_bytes()), BlocksText(node.held_blocks())});
    }
  }
  session.PrintTable(table);
}

void PrintTable(Session& session, const v1::ListProcessesResponse& response) {
  const Formatter& format = session.format();
  std::vector<Column> columns = {{"ID"},
                                 {"PID", Align::kRight},
                                 {"UID", Align::kRight},
                                 {"STATE"},
                                 {"THREADS", Align::kRight},
                                 {"HOLDS", Align::kRight},
                                 {"PEAK", Align::kRight},
                                 {"LIMIT", Align::kRight},
                                 {"LAST-ACTIVE", Align::kRight},
                                 {"LOCKS", Align::kLeft, true},
                                 {"MEMS-ALLOWED", Align::kLeft, true},
                                 {"ATTACHED", Align::kRight}};
  if (session.wide()) columns.push_back({"BLOCKS"});
  columns.push_back({"COMMAND", Align::kLeft, true});
  TablePrinter table(columns);
  const v1::SampleInfo& sample = response.sample();
  for (const v1::Process& process : response.processes()) {
    std::vector<Cell> cells = {LastPart(process.name()),
                               std::to_string(process.pid()),
                               std::to_string(process.uid()),
                               StateCell(process, format),
                               std::to_string(process.threads()),
                               format.Bytes(process.allocated_bytes()),
                               format.Bytes(process.peak_bytes()),
                               LimitText(process, format),
                               AgeText(process.has_active_time(),
                                       process.active_time(), sample, format),
                               HoldsText(process, format),
                               NumberRanges({process.mems_allowed().begin(),
                                             process.mems_allowed().end()}),
                               AgeText(process.has_attach_time(),
                                       process.attach_time(), sample, format)};
    if (session.wide()) cells.push_back(BlocksText(process.held_blocks()));
    cells.push_back(process.command());
    table.AddRow(std::move(cells));
  }
  session.PrintTable(table);
}

void PrintProcesses(Session& session, const std::string& subject,
                    const v1::ListProcessesResponse& response) {
  const int count = response.processes_size();
  std::vector<std::string> parts = {std::to_string(count) +
                                    (count == 1 ? " process" : " processes")};
  for (std::string& part : session.SampleParts(response.sample())) {
    parts.push_back(std::move(part));
  }
  session.PrintHeading(subject, parts);
  if (session.invocation().Has("--nodes")) {
    PrintNodes(session, response);
  } else {
    PrintTable(session, response);
  }
}

}  // namespace

absl::StatusOr<ExitCode> RunProcesses(Session& session) {
  return ForEachSubject(
      session,
      [&](Connection& connection, const std::string& subject) -> absl::Status {
        v1::ListProcessesRequest request;
        request.set_parent(subject);
        if (session.invocation().Has("--nodes")) {
          request.set_view(v1::PROCESS_VIEW_NODES);
        }
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
