// SPDX-License-Identifier: Apache-2.0
// The verbs topology and subjects: what is served, and on which machine.
#include <algorithm>

#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

template <typename Numbers>
std::vector<int> ToVector(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

std::string JoinWords(
    const google::protobuf::RepeatedPtrField<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

void PrintTopology(Session& session, const v1::Topology& topology) {
  const Formatter& format = session.format();
  std::string source = topology.description();
  if (source.empty()) source = SourceText(topology.source());
  session.PrintHeading(topology.name(),
                       {"topology " + source,
                        std::to_string(topology.nodes_size()) +
                            (topology.nodes_size() == 1 ? " node" : " nodes")});
  TablePrinter table({{"NODE", Align::kRight},
                      {"MEMORY", Align::kRight},
                      {"CPUS", Align::kRight},
                      {"CPU-LIST", Align::kLeft, true},
                      {"NEAR-CPUS", Align::kLeft, true},
                      {"ZONES"},
                      {"DISTANCES", Align::kLeft, true}});
  for (const v1::Node& node : topology.nodes()) {
    std::string distances;
    for (const int distance : node.distances()) {
      distances += (distances.empty() ? "" : " ") + std::to_string(distance);
    }
    table.AddRow(
        {std::to_string(node.os_index()), format.Bytes(node.memory_bytes()),
         std::to_string(node.cpus_size()), NumberRanges(ToVector(node.cpus())),
         NumberRanges(ToVector(node.near_cpus())), JoinWords(node.zones()),
         distances});
  }
  session.PrintTable(table);
  if (topology.homeless_cpus_size() > 0) {
    session.out() << "CPUs of no node  "
                  << NumberRanges(ToVector(topology.homeless_cpus())) << '\n';
  }
  if (topology.offline_cpus_size() > 0) {
    session.out() << "offline CPUs     "
                  << NumberRanges(ToVector(topology.offline_cpus())) << '\n';
  }
  for (const std::string& warning : topology.warnings()) {
    session.out() << Paint("warning  ", Tone::kWarning, session.style().color)
                  << warning << '\n';
  }
}

void PrintSubjects(Session& session, const v1::ListSubjectsResponse& list) {
  const Formatter& format = session.format();
  session.PrintHeading(
      std::to_string(list.subjects_size()) +
          (list.subjects_size() == 1 ? " subject" : " subjects"),
      {"daemon " + list.daemon_version()});
  std::vector<Column> columns = {{"SUBJECT"},
                                 {"STATE"},
                                 {"SIZE", Align::kRight},
                                 {"INITIALISED", Align::kRight},
                                 {"POLICY"},
                                 {"GENERATION", Align::kRight},
                                 {"ETAG"},
                                 {"CAPABILITIES", Align::kLeft, true}};
  if (session.wide()) columns.push_back({"PAGE", Align::kRight});
  TablePrinter table(columns);
  for (const v1::Subject& subject : list.subjects()) {
    const bool pool = subject.kind() == v1::SUBJECT_KIND_POOL;
    Cell state = SubjectStateCell(subject.state());
    if (!subject.degraded_reason().empty()) {
      state.text += ": " + subject.degraded_reason();
    }
    table.AddRow({subject.name(), state,
                  pool ? format.Bytes(subject.size_bytes()) : kAbsent,
                  pool ? format.Bytes(subject.initialised_bytes()) : kAbsent,
                  subject.policy(), std::to_string(subject.generation()),
                  subject.etag(), JoinWords(subject.capabilities()),
                  format.Bytes(subject.page_size_bytes())});
  }
  session.PrintTable(table);
}

}  // namespace

absl::StatusOr<ExitCode> RunTopology(Session& session) {
  return ForEachSubject(
      session,
      [&](Connection& connection, const std::string& subject) -> absl::Status {
        v1::GetTopologyRequest request;
        request.set_name(subject);
        auto response = connection.Call(&v1::TopologyService::Stub::GetTopology,
                                        connection.topology(), request);
        if (!response.ok()) return response.status();
        if (session.for_scripts()) {
          session.PrintMessage(*response);
        } else {
          PrintTopology(session, response->topology());
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<ExitCode> RunSubjects(Session& session) {
  auto connection = session.Connect();
  if (!connection.ok()) return connection.status();
  auto list = ListSubjects(**connection);
  if (!list.ok()) return list.status();
  const std::string wanted = session.invocation().Text("--subject");
  if (!wanted.empty()) {
    auto& subjects = *list->mutable_subjects();
    subjects.erase(std::remove_if(subjects.begin(), subjects.end(),
                                  [&](const v1::Subject& subject) {
                                    return subject.name() != wanted;
                                  }),
                   subjects.end());
    if (subjects.empty()) {
      return absl::NotFoundError("the daemon serves no subject " + wanted);
    }
  }
  if (session.for_scripts()) {
    session.PrintMessage(*list);
  } else {
    PrintSubjects(session, *list);
  }
  return ExitCode::kDone;
}

}  // namespace memtuned::ctl
