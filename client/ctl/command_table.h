// SPDX-License-Identifier: Apache-2.0
// The table of commands: every verb of memtunectl with its arguments, options,
// help and examples. Parsing, --help, shell completion and the README's
// reference come from it, so a verb is one row here and one function.
#ifndef MEMTUNED_CLIENT_CTL_COMMAND_TABLE_H_
#define MEMTUNED_CLIENT_CTL_COMMAND_TABLE_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/ctl/exit_code.h"

namespace memtuned::ctl {

class Session;

// What a value is: decides how it is checked and what completion offers.
enum class ValueKind {
  kFlag,        // no value
  kText,        // anything
  kChoice,      // one of `choices`
  kChoices,     // one or more of `choices`, commas between
  kNumber,      // one whole number in min..max
  kNumbers,     // whole numbers in min..max: "0", "0,2", "4-7"
  kDuration,    // "10s", "300ms", "2m"; seconds in min..max
  kSubject,     // "host" or "pools/NAME"
  kAssignment,  // "TUNABLE=VALUE"
  kTunable,     // the name of a tunable
  kVerb,        // the name of a verb
};

// One option of a verb, or of all of them.
struct OptionDef {
  const char* name;    // "--node"
  const char* letter;  // "-o", or "" for none
  const char* value;   // "N" in the help; "" for a flag
  ValueKind kind;
  const char* help;                           // one sentence
  std::span<const char* const> choices = {};  // kChoice, kChoices
  double min = 0, max = 0;                    // kNumber, kNumbers, kDuration
};

// The positional arguments of a verb.
struct ArgumentDef {
  const char* usage;  // "KEY=VALUE..." in the help; "" for none
  ValueKind kind;
  int min = 0, max = 0;  // how many
  std::span<const char* const> choices = {};
};

// How a verb treats subjects.
enum class SubjectUse {
  kNone,  // the verb is about no subject
  kAll,   // reads: --subject, else every subject
  kOne,   // changes: --subject, or the only one there is
};

// Runs a verb. Returns: kDone, kFindings or kPartial; failures are errors.
using VerbFunction = absl::StatusOr<ExitCode> (*)(Session& session);

// One row of the table.
struct CommandDef {
  const char* name;
  const char* alias = "";
  ArgumentDef argument = {"", ValueKind::kFlag};  // none
  std::span<const OptionDef> options = {};
  SubjectUse subjects = SubjectUse::kNone;
  bool is_local = false;      // needs no daemon
  bool hidden = false;        // for scripts and this project's own tools
  const char* help;           // one sentence
  const char* examples = "";  // lines to copy, without the prompt
  VerbFunction run;
};

// All verbs, in the order of the help.
std::span<const CommandDef> CommandTable();
// Options that every verb takes.
std::span<const OptionDef> GlobalOptions();

// By name or alias; nullptr when there is none.
const CommandDef* FindCommand(std::string_view name);
// The option of `command` (nullptr: of none) or of all verbs, by name or
// letter; nullptr when there is none.
const OptionDef* FindOption(const CommandDef* command, std::string_view name);

// "memtunectl set KEY=VALUE... [OPTIONS]"
std::string UsageLine(const CommandDef& command);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_COMMAND_TABLE_H_
