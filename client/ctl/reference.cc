// SPDX-License-Identifier: Apache-2.0
// Implementation of reference.h.
#include "client/ctl/reference.h"

#include <vector>

#include "client/ctl/command_table.h"
#include "client/ctl/exit_code.h"
#include "core/stats.h"
#include "core/tunables.h"

namespace memtuned::ctl {
namespace {

// A cell's text: bars would end the cell.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char byte : text) {
    if (byte == '|') escaped += '\\';
    escaped += byte;
  }
  return escaped;
}

std::string Code(const std::string& text) {
  return text.empty() ? "" : "`" + text + "`";
}

std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += cell.empty() ? " |" : " " + Escape(cell) + " |";
  }
  return row + "\n";
}

std::string Head(const std::vector<std::string>& titles) {
  std::string rule = "|";
  for (size_t i = 0; i < titles.size(); ++i) rule += "---|";
  return Row(titles) + rule + "\n";
}

std::string OptionSyntax(const OptionDef& option) {
  std::string text = option.name;
  if (*option.value != '\0') text += std::string(" ") + option.value;
  return text;
}

const char* TypeName(StatType type) {
  switch (type) {
    case StatType::kCounter:
      return "counter";
    case StatType::kGauge:
      return "gauge";
    case StatType::kHistogram:
      return "histogram";
  }
  return "";
}

}  // namespace

std::string CommandReference() {
  std::string text = Head({"verb", "options", "does"});
  for (const CommandDef& command : CommandTable()) {
    if (command.hidden) continue;
    std::string verb = command.name;
    if (*command.argument.usage != '\0') {
      verb += std::string(" ") + command.argument.usage;
    }
    verb = Code(verb);
    if (*command.alias != '\0') verb += ", " + Code(command.alias);
    std::string options;
    for (const OptionDef& option : command.options) {
      options += (options.empty() ? "" : " ") + Code(OptionSyntax(option));
    }
    text += Row({verb, options, command.help});
  }
  return text;
}

std::string OptionReference() {
  std::string text = Head({"option", "short", "is"});
  for (const OptionDef& option : GlobalOptions()) {
    text += Row({Code(OptionSyntax(option)), Code(option.letter), option.help});
  }
  return text;
}

std::string ExitCodeReference() {
  std::string text = Head({"status", "name", "means"});
  for (const ExitCodeDef& def : ExitCodeTable()) {
    text += Row(
        {std::to_string(static_cast<int>(def.code)), def.name, def.meaning});
  }
  return text;
}

std::string TunableReference() {
  std::string text =
      Head({"tunable", "allowed", "default", "unit", "kernel", "effect"});
  for (const TunableDef& def : TunableTable()) {
    text += Row({Code(def.name), AllowedText(def), Code(def.default_text),
                 def.unit, Code(def.kernel_name), def.help});
  }
  return text;
}

std::string MetricReference() {
  std::string text = Head({"metric", "type", "meaning"});
  for (const StatDef& def : StatTable()) {
    std::string help = def.help;
    if (def.per_cpu) help += " (only with `--metrics-per-cpu`)";
    text += Row({Code(def.name), TypeName(def.type), help});
  }
  return text;
}

}  // namespace memtuned::ctl
