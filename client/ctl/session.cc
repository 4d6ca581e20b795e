// SPDX-License-Identifier: Apache-2.0
// Implementation of session.h.
#include "client/ctl/session.h"

#include <google/protobuf/util/time_util.h>

#include <cstdlib>

#include "client/ctl/connection.h"
#include "client/ctl/output.h"
#include "client/ctl/paging.h"

namespace memtuned::ctl {
namespace {

constexpr double kDefaultTimeoutSeconds = 10;

}  // namespace

Session::Session(Invocation invocation, const Terminal& terminal, Route route)
    : invocation_(std::move(invocation)),
      terminal_(terminal),
      route_(std::move(route)),
      format_(terminal.glyphs) {}

Session::~Session() = default;

bool Session::for_scripts() const {
  const OutputFormat output = invocation_.output();
  return output == OutputFormat::kJson || output == OutputFormat::kYaml;
}

bool Session::wide() const {
  return invocation_.output() == OutputFormat::kWide;
}

TableStyle Session::style() const {
  const std::string color = invocation_.Text("--color", "auto");
  const char* no_color = std::getenv("NO_COLOR");
  const bool wanted = no_color == nullptr || *no_color == '\0';
  TableStyle style;
  style.width = wide() ? 0 : terminal_.width;
  style.color =
      color == "always" || (color == "auto" && terminal_.is_terminal && wanted);
  style.ellipsis = format_.glyphs().ellipsis;
  return style;
}

absl::StatusOr<Connection*> Session::Connect() {
  if (connection_ != nullptr) return connection_.get();
  auto target = ParseTarget(route_.target);
  if (!target.ok()) return target.status();
  auto connection = Connection::Create(
      *target, route_.tls,
      {invocation_.Seconds("--timeout", kDefaultTimeoutSeconds),
       route_.one_deadline});
  if (!connection.ok()) return connection.status();
  connection_ = std::move(*connection);
  return connection_.get();
}

absl::StatusOr<std::vector<std::string>> Session::Subjects() {
  if (invocation_.Has("--subject")) {
    return std::vector<std::string>{invocation_.Text("--subject")};
  }
  auto connection = Connect();
  if (!connection.ok()) return connection.status();
  auto list = ListSubjects(**connection);
  if (!list.ok()) return list.status();

  std::vector<std::string> names;
  std::string text;
  for (const v1::Subject& subject : list->subjects()) {
    names.push_back(subject.name());
    text += (text.empty() ? "" : ", ") + subject.name();
  }
  if (invocation_.command->subjects == SubjectUse::kOne && names.size() != 1) {
    return absl::InvalidArgumentError(
        std::string(invocation_.command->name) +
        " changes something and needs --subject; the daemon serves " +
        (names.empty() ? "none" : text));
  }
  return names;
}

void Session::PrintMessage(const google::protobuf::Message& message,
                           bool line) {
  PrintDocument(out(), ToJson(message, !line),
                invocation_.output() == OutputFormat::kYaml);
}

void Session::PrintHeading(const std::string& subject,
                           const std::vector<std::string>& parts) {
  if (printed_heading_) out() << '\n';
  printed_heading_ = true;
  out() << subject << " at "
        << (connection_ == nullptr ? "" : connection_->target().Address());
  for (const std::string& part : parts) {
    if (!part.empty()) out() << format_.glyphs().separator << part;
  }
  out() << '\n';
}

std::vector<std::string> Session::SampleParts(
    const v1::SampleInfo& sample) const {
  using google::protobuf::util::TimeUtil;
  const double age =
      static_cast<double>(TimeUtil::DurationToMicroseconds(sample.age())) / 1e6;
  return {"generation " + std::to_string(sample.generation()),
          sample.policy().empty() ? "" : "policy " + sample.policy(),
          sample.time().seconds() == 0 ? "sample of unknown age"
                                       : "sample " + format_.Age(age) + " old"};
}

void Session::PrintTable(const TablePrinter& table) {
  table.Print(out(), style());
}

void Session::PrintWarning(const std::string& text) {
  out().flush();
  terminal_.err << "memtunectl: " << text << '\n';
}

}  // namespace memtuned::ctl
