// SPDX-License-Identifier: Apache-2.0
// The verbs that need no daemon: completion, complete, help, reference.
#include "client/ctl/completion.h"
#include "client/ctl/connection.h"
#include "client/ctl/help.h"
#include "client/ctl/paging.h"
#include "client/ctl/reference.h"
#include "client/ctl/session.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

// Nobody wants to wait for a daemon while typing.
constexpr double kCompletionTimeoutSeconds = 0.3;

std::vector<std::string> SubjectNames(const std::string& address) {
  std::vector<std::string> names;
  const auto target = ParseTarget(address);
  if (!target.ok()) return names;
  auto connection =
      Connection::Create(*target, TlsFiles{}, {kCompletionTimeoutSeconds});
  if (!connection.ok()) return names;
  const auto list = ListSubjects(**connection);
  if (!list.ok()) return names;
  for (const v1::Subject& subject : list->subjects()) {
    names.push_back(subject.name());
  }
  return names;
}

}  // namespace

absl::StatusOr<ExitCode> RunCompletion(Session& session) {
  session.out() << CompletionScript(session.invocation().arguments[0]);
  return ExitCode::kDone;
}

absl::StatusOr<ExitCode> RunComplete(Session& session) {
  for (const Candidate& candidate :
       Complete(session.invocation().arguments, SubjectNames)) {
    session.out() << candidate.text << '\t' << candidate.help << '\n';
  }
  return ExitCode::kDone;
}

absl::StatusOr<ExitCode> RunHelp(Session& session) {
  const std::vector<std::string>& arguments = session.invocation().arguments;
  if (arguments.empty()) {
    session.out() << GeneralHelp();
    return ExitCode::kDone;
  }
  const CommandDef* command = FindCommand(arguments[0]);
  if (command == nullptr) return UnknownVerb(arguments[0]);
  session.out() << CommandHelp(*command);
  return ExitCode::kDone;
}

absl::StatusOr<ExitCode> RunReference(Session& session) {
  const std::string& table = session.invocation().arguments[0];
  if (table == "commands") session.out() << CommandReference();
  if (table == "options") session.out() << OptionReference();
  if (table == "exit-codes") session.out() << ExitCodeReference();
  if (table == "tunables") session.out() << TunableReference();
  if (table == "metrics") session.out() << MetricReference();
  return ExitCode::kDone;
}

}  // namespace memtuned::ctl
