// SPDX-License-Identifier: Apache-2.0
// Implementation of help.h.
#include "client/ctl/help.h"

#include <sstream>

#include "client/ctl/exit_code.h"

namespace memtuned::ctl {
namespace {

constexpr size_t kHelpColumn = 26;
constexpr size_t kWidth = 80;

// "  left      text", the text wrapped at word ends under itself.
void AddEntry(std::string& help, const std::string& left,
              const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > kHelpColumn) {
    help += line + '\n';
    line.clear();
  }
  line.resize(kHelpColumn, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool first = line.size() == kHelpColumn && line.back() == ' ';
    if (!first && line.size() + 1 + word.size() > kWidth) {
      help += line + '\n';
      line.assign(kHelpColumn, ' ');
    } else if (!first) {
      line += ' ';
    }
    line += word;
  }
  help += line + '\n';
}

std::string OptionText(const OptionDef& option) {
  std::string text =
      *option.letter == '\0' ? "" : std::string(option.letter) + ", ";
  text += option.name;
  if (*option.value != '\0') text += std::string(" ") + option.value;
  return text;
}

void AddOptions(std::string& help, std::span<const OptionDef> options) {
  for (const OptionDef& option : options) {
    AddEntry(help, OptionText(option), option.help);
  }
}

void AddExamples(std::string& help, const std::string& examples) {
  std::istringstream lines(examples);
  for (std::string line; std::getline(lines, line);) {
    help += "  " + line + '\n';
  }
}

}  // namespace

std::string GeneralHelp() {
  std::string help =
      "memtunectl: watch and tune page memory through the memtuned daemon\n\n"
      "usage: memtunectl [OPTIONS] VERB [ARGUMENTS]\n\nVerbs\n";
  for (const CommandDef& command : CommandTable()) {
    if (command.hidden) continue;
    std::string left = command.name;
    if (*command.alias != '\0') left += std::string(", ") + command.alias;
    if (*command.argument.usage != '\0') {
      left += std::string(" ") + command.argument.usage;
    }
    AddEntry(help, left, command.help);
  }
  help += "\nOptions of every verb\n";
  AddOptions(help, GlobalOptions());
  help += "\nEnvironment\n";
  AddEntry(help, "MEMTUNED_TARGET", "the daemon's address, as for --target");
  AddEntry(help, "NO_COLOR", "when set: no colours unless --color always");
  help += "\nExit status\n";
  for (const ExitCodeDef& def : ExitCodeTable()) {
    AddEntry(help, std::to_string(static_cast<int>(def.code)) + "  " + def.name,
             def.meaning);
  }
  help += "\nExamples\n";
  for (const char* name : {"zones", "pagesets", "stats", "set", "drain"}) {
    AddExamples(help, FindCommand(name)->examples);
  }
  help += "\n'memtunectl help VERB' tells more about a verb.\n";
  return help;
}

std::string CommandHelp(const CommandDef& command) {
  std::string help = std::string(command.help) +
                     "\n\nusage: memtunectl "
                     "[OPTIONS] " +
                     command.name;
  if (*command.argument.usage != '\0') {
    help += std::string(" ") + command.argument.usage;
  }
  if (!command.options.empty()) help += " [VERB OPTIONS]";
  help += '\n';
  if (*command.alias != '\0') {
    help += std::string("also:  memtunectl ") + command.alias + '\n';
  }
  if (command.subjects == SubjectUse::kOne) {
    help += "\nNeeds --subject unless the daemon serves exactly one.\n";
  }
  if (!command.options.empty()) {
    help += "\nOptions of " + std::string(command.name) + '\n';
    AddOptions(help, command.options);
  }
  help += "\nOptions of every verb\n";
  AddOptions(help, GlobalOptions());
  if (*command.examples != '\0') {
    help += "\nExamples\n";
    AddExamples(help, command.examples);
  }
  return help;
}

}  // namespace memtuned::ctl
