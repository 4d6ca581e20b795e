// SPDX-License-Identifier: Apache-2.0
// Implementation of run.h.
#include "client/ctl/run.h"

#include "client/ctl/context.h"
#include "client/ctl/fleet.h"
#include "client/ctl/output.h"
#include "client/ctl/rpc_error.h"
#include "client/ctl/target_list.h"

namespace memtuned::ctl {
namespace {

void PrintError(const absl::Status& status, OutputFormat output,
                const Terminal& terminal) {
  if (output == OutputFormat::kJson || output == OutputFormat::kYaml) {
    PrintDocument(terminal.out, ErrorJson(status),
                  output == OutputFormat::kYaml);
    return;
  }
  terminal.out.flush();
  const std::vector<std::string> lines = ErrorLines(status);
  terminal.err << "memtunectl: " << lines[0] << '\n';
  for (size_t i = 1; i < lines.size(); ++i) {
    terminal.err << "  " << lines[i] << '\n';
  }
}

absl::StatusOr<ExitCode> RunVerb(const Invocation& invocation,
                                 const Terminal& terminal) {
  const CommandDef& command = *invocation.command;
  if (command.is_local) {
    Session session(invocation, terminal, {});
    return command.run(session);
  }
  auto context = ContextOf(invocation);
  if (!context.ok()) return context.status();
  if (context->targets.empty()) {
    Session session(invocation, terminal,
                    {context->target, context->tls, /*one_deadline=*/false});
    return command.run(session);
  }
  auto targets = ReadTargets(context->targets);
  if (!targets.ok()) return targets.status();
  return RunFleet(invocation, *targets, context->tls, terminal);
}

}  // namespace

ExitCode Run(const std::vector<std::string>& arguments,
             const Terminal& terminal) {
  const OutputFormat output = GuessOutput(arguments);
  absl::StatusOr<Invocation> invocation = ParseCommandLine(arguments);
  if (!invocation.ok()) {
    PrintError(invocation.status(), output, terminal);
    return ExitCodeOf(invocation.status());
  }
  absl::StatusOr<ExitCode> outcome = RunVerb(*invocation, terminal);
  if (outcome.ok() && !terminal.out.flush()) {
    outcome = absl::InternalError("the output cannot be written");
  }
  if (outcome.ok()) return *outcome;
  PrintError(outcome.status(), output, terminal);
  terminal.out.flush();
  return ExitCodeOf(outcome.status());
}

}  // namespace memtuned::ctl
