// SPDX-License-Identifier: Apache-2.0
// Implementation of subject_loop.h.
#include "client/ctl/subject_loop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ctl/labels.h"
#include "client/ctl/output.h"
#include "client/ctl/paging.h"

namespace memtuned::ctl {

absl::StatusOr<ExitCode> ForEachSubject(Session& session,
                                        const SubjectReader& read) {
  auto connection = session.Connect();
  if (!connection.ok()) return connection.status();
  auto subjects = session.Subjects();
  if (!subjects.ok()) return subjects.status();
  if (subjects->empty()) session.PrintWarning("the daemon serves no subject");

  size_t failed = 0;
  for (const std::string& subject : *subjects) {
    const absl::Status status = read(**connection, subject);
    if (status.ok()) continue;
    ++failed;
    // When all of them fail, the caller prints the last one.
    if (failed == subjects->size()) return status;
    if (session.for_scripts()) {
      PrintDocument(session.out(), ErrorJson(status),
                    session.invocation().output() == OutputFormat::kYaml);
      continue;
    }
    for (const std::string& line : ErrorLines(status)) {
      session.PrintWarning(absl::StrCat(subject, ": ", line));
    }
  }
  return failed == 0 ? ExitCode::kDone : ExitCode::kPartial;
}

ZoneFilter::ZoneFilter(const Invocation& invocation)
    : nodes_(invocation.Numbers("--node")), zones_(invocation.List("--zone")) {}

bool ZoneFilter::Matches(int node, const std::string& zone) const {
  return (nodes_.empty() ||
          std::binary_search(nodes_.begin(), nodes_.end(), node)) &&
         (zones_.empty() ||
          std::find(zones_.begin(), zones_.end(), zone) != zones_.end());
}

absl::Status ZoneFilter::Apply(
    const std::string& subject,
    google::protobuf::RepeatedPtrField<v1::Zone>& zones) const {
  if (nodes_.empty() && zones_.empty()) return absl::OkStatus();
  std::string present;
  for (const v1::Zone& zone : zones) {
    present += (present.empty() ? "" : ", ") + ZoneLabel(zone.name());
  }
  zones.erase(std::remove_if(zones.begin(), zones.end(),
                             [this](const v1::Zone& zone) {
                               return !Matches(zone.node(), zone.zone());
                             }),
              zones.end());
  if (!zones.empty()) return absl::OkStatus();
  return absl::NotFoundError("no zone of " + subject +
                             " matches --node and --zone; it has " + present);
}

absl::StatusOr<int64_t> PageSizeBytes(Connection& connection,
                                      const std::string& subject) {
  auto list = ListSubjects(connection);
  if (!list.ok()) return list.status();
  for (const v1::Subject& each : list->subjects()) {
    if (each.name() == subject) return each.page_size_bytes();
  }
  return absl::NotFoundError("the daemon serves no subject " + subject);
}

}  // namespace memtuned::ctl
