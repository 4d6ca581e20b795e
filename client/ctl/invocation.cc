// SPDX-License-Identifier: Apache-2.0
// Implementation of invocation.h: the command table turned into a CLI11
// parser. The library splits the words; what they may be is checked here, so
// that every message names the value and what is allowed.
#include "client/ctl/invocation.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>

#include "CLI/CLI.hpp"
#include "client/ctl/format.h"

namespace memtuned::ctl {
namespace {

// Longest range that a list such as 0-4095 may name.
constexpr int kMaxListed = 1 << 16;

// Where the parser puts what it read; addresses stay valid while it runs.
using Values = std::map<std::string, std::vector<std::string>>;

std::string Join(std::span<const char* const> words) {
  std::string text;
  for (const char* word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

absl::Status Bad(const std::string& what, const std::string& value,
                 const std::string& allowed) {
  return absl::InvalidArgumentError(what + " is '" + value + "'; allowed " +
                                    allowed);
}

std::string NumberText(double value) {
  std::ostringstream text;
  text.precision(12);
  text << value;
  return text.str();
}

bool Contains(std::span<const char* const> words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [word](const char* each) { return word == each; });
}

bool IsSubjectName(std::string_view name) {
  static constexpr std::string_view kPools = "pools/";
  return name == "host" ||
         (name.substr(0, kPools.size()) == kPools &&
          name.size() > kPools.size() &&
          name.find('/', kPools.size()) == std::string_view::npos);
}

absl::Status CheckOption(const OptionDef& option, const std::string& value) {
  switch (option.kind) {
    case ValueKind::kChoice:
      if (!Contains(option.choices, value)) {
        return Bad(option.name, value, Join(option.choices));
      }
      break;
    case ValueKind::kChoices:
      for (const std::string& part : Split(value.empty() ? "," : value)) {
        if (!Contains(option.choices, part)) {
          return Bad(option.name, value, Join(option.choices));
        }
      }
      break;
    case ValueKind::kNumber:
      if (value.find_first_not_of("0123456789") != std::string::npos ||
          !ParseNumbers(value, static_cast<int>(option.min),
                        static_cast<int>(option.max))) {
        return Bad(option.name, value,
                   "a whole number " + NumberText(option.min) + " to " +
                       NumberText(option.max));
      }
      break;
    case ValueKind::kNumbers:
      if (!ParseNumbers(value, static_cast<int>(option.min),
                        static_cast<int>(option.max))) {
        return Bad(option.name, value,
                   "whole numbers " + NumberText(option.min) + " to " +
                       NumberText(option.max) + ", as in 0 or 0,2-3");
      }
      break;
    case ValueKind::kDuration: {
      const std::optional<double> seconds = ParseSeconds(value);
      if (!seconds || *seconds < option.min || *seconds > option.max) {
        return Bad(option.name, value,
                   NumberText(option.min) + " to " + NumberText(option.max) +
                       " seconds, as in 10s, 300ms or 2m");
      }
      break;
    }
    case ValueKind::kSubject:
      if (!IsSubjectName(value)) {
        return Bad(option.name, value, "host or pools/NAME");
      }
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckArguments(const CommandDef& command,
                            const std::vector<std::string>& arguments) {
  const ArgumentDef& def = command.argument;
  const int count = static_cast<int>(arguments.size());
  if (count < def.min) {
    return absl::InvalidArgumentError(std::string(command.name) + " needs " +
                                      def.usage +
                                      "; usage: " + UsageLine(command));
  }
  if (count > def.max) {
    return absl::InvalidArgumentError(std::string(command.name) +
                                      ": unexpected argument '" +
                                      arguments[static_cast<size_t>(def.max)] +
                                      "'; usage: " + UsageLine(command));
  }
  if (def.kind != ValueKind::kChoice) return absl::OkStatus();
  for (const std::string& argument : arguments) {
    if (!Contains(def.choices, argument)) {
      return Bad(def.usage, argument, Join(def.choices));
    }
  }
  return absl::OkStatus();
}

void AddOptions(CLI::App& app, std::span<const OptionDef> options,
                Values& values) {
  for (const OptionDef& option : options) {
    std::string names = option.name;
    if (*option.letter != '\0') names += std::string(",") + option.letter;
    std::vector<std::string>& target = values[option.name];
    if (option.kind == ValueKind::kFlag) {
      app.add_flag_function(names, [&target](int64_t) { target = {"true"}; });
    } else {
      app.add_option(names, target)->allow_extra_args(false);
    }
  }
}

// "unknown verb 'zonse'; did you mean 'zones'?"
absl::Status Unknown(const std::string& kind, const std::string& word,
                     const std::vector<std::string>& known) {
  const std::string nearest = Nearest(word, known);
  return absl::InvalidArgumentError("unknown " + kind + " '" + word + "'; " +
                                    (nearest.empty()
                                         ? "see 'memtunectl help'"
                                         : "did you mean '" + nearest + "'?"));
}

absl::Status UnknownWord(const CommandDef* command, const std::string& word) {
  std::vector<std::string> known;
  if (word.size() > 1 && word[0] == '-') {
    for (const OptionDef& option : GlobalOptions()) {
      known.push_back(option.name);
    }
    if (command != nullptr) {
      for (const OptionDef& option : command->options) {
        known.push_back(option.name);
      }
    }
    const std::string name = word.substr(0, word.find('='));
    return Unknown(command == nullptr
                       ? "option"
                       : "option of " + std::string(command->name),
                   name, known);
  }
  if (command != nullptr) {
    return absl::InvalidArgumentError(std::string(command->name) +
                                      ": unexpected argument '" + word +
                                      "'; usage: " + UsageLine(*command));
  }
  return UnknownVerb(word);
}

// The library's own message, without its names for types.
std::string ParserText(std::string text) {
  const std::string missing = ": 1 required TEXT missing";
  const size_t found = text.find(missing);
  if (found != std::string::npos)
    text.replace(found, missing.size(), " needs a value");
  return text;
}

// The parser and everything it writes to.
struct Parser {
  CLI::App app;
  Values globals;
  std::map<const CommandDef*, Values> values;
  std::map<const CommandDef*, std::vector<std::string>> arguments;

  Parser() {
    app.set_help_flag();
    app.allow_extras();
    app.require_subcommand(0, 1);
    AddOptions(app, GlobalOptions(), globals);
    for (const CommandDef& command : CommandTable()) {
      CLI::App* verb = app.add_subcommand(command.name);
      verb->set_help_flag();
      if (*command.alias != '\0') verb->alias(command.alias);
      verb->allow_extras();
      verb->fallthrough();
      AddOptions(*verb, command.options, values[&command]);
      verb->add_option("arguments", arguments[&command]);
    }
  }
};

absl::StatusOr<Invocation> Collect(Parser& parser) {
  Invocation invocation;
  const auto verbs = parser.app.get_subcommands();
  if (!verbs.empty()) invocation.command = FindCommand(verbs[0]->get_name());
  for (const std::string& word : parser.app.remaining(true)) {
    return UnknownWord(invocation.command, word);
  }

  invocation.options = parser.globals;
  if (invocation.command != nullptr) {
    invocation.options.merge(parser.values[invocation.command]);
    invocation.arguments = parser.arguments[invocation.command];
  }
  std::erase_if(invocation.options,
                [](const auto& entry) { return entry.second.empty(); });

  if (invocation.Has("--help") || invocation.Has("--version")) {
    const bool help = invocation.Has("--help");
    invocation.arguments.clear();
    if (help && invocation.command != nullptr) {
      invocation.arguments = {invocation.command->name};
    }
    invocation.command = FindCommand(help ? "help" : "version");
  }
  if (invocation.command == nullptr) {
    return absl::InvalidArgumentError(
        "a verb is missing; see 'memtunectl help'");
  }
  return invocation;
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string Invocation::Text(const std::string& option,
                             const std::string& fallback) const {
  const auto found = options.find(option);
  return found == options.end() ? fallback : found->second.back();
}

std::vector<int> Invocation::Numbers(const std::string& option) const {
  std::set<int> numbers;
  const auto found = options.find(option);
  const OptionDef* def = FindOption(command, option);
  if (found == options.end() || def == nullptr) return {};
  for (const std::string& value : found->second) {
    const auto parsed = ParseNumbers(value, static_cast<int>(def->min),
                                     static_cast<int>(def->max));
    if (parsed) numbers.insert(parsed->begin(), parsed->end());
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<std::string> Invocation::List(const std::string& option) const {
  std::vector<std::string> all;
  const auto found = options.find(option);
  if (found == options.end()) return all;
  for (const std::string& value : found->second) {
    for (std::string& part : Split(value)) {
      if (std::find(all.begin(), all.end(), part) == all.end()) {
        all.push_back(std::move(part));
      }
    }
  }
  return all;
}

double Invocation::Seconds(const std::string& option, double fallback) const {
  return ParseSeconds(Text(option)).value_or(fallback);
}

OutputFormat Invocation::output() const {
  const std::string name = Text("--output", "table");
  if (name == "json") return OutputFormat::kJson;
  if (name == "yaml") return OutputFormat::kYaml;
  return name == "wide" ? OutputFormat::kWide : OutputFormat::kTable;
}

absl::StatusOr<Invocation> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  // Completion hands over words that are not finished: not for the parser.
  if (!arguments.empty() && arguments[0] == "complete") {
    Invocation invocation;
    invocation.command = FindCommand("complete");
    invocation.arguments.assign(arguments.begin() + 1, arguments.end());
    return invocation;
  }

  Parser parser;
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    parser.app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(ParserText(error.what()));
  }
  absl::StatusOr<Invocation> invocation = Collect(parser);
  if (!invocation.ok()) return invocation;

  for (const auto& [name, values] : invocation->options) {
    const OptionDef* option = FindOption(invocation->command, name);
    // --help and --version replace the verb and leave its options behind.
    if (option == nullptr) continue;
    for (const std::string& value : values) {
      const absl::Status checked = CheckOption(*option, value);
      if (!checked.ok()) return checked;
    }
  }
  const absl::Status counted =
      CheckArguments(*invocation->command, invocation->arguments);
  if (!counted.ok()) return counted;
  return invocation;
}

OutputFormat GuessOutput(const std::vector<std::string>& arguments) {
  std::string format;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if ((word == "-o" || word == "--output") && i + 1 < arguments.size()) {
      format = arguments[i + 1];
    } else if (word.rfind("--output=", 0) == 0) {
      format = word.substr(9);
    } else if (word.rfind("-o", 0) == 0) {
      format = word.substr(2);
    }
  }
  if (format == "json") return OutputFormat::kJson;
  return format == "yaml" ? OutputFormat::kYaml : OutputFormat::kTable;
}

std::optional<std::vector<int>> ParseNumbers(std::string_view text, int min,
                                             int max) {
  std::vector<int> numbers;
  auto number = [&](std::string_view part) -> std::optional<int> {
    int value = 0;
    const char* end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, value);
    if (error != std::errc() || rest != end || part.empty() || part[0] == '-' ||
        value < min || value > max) {
      return std::nullopt;
    }
    return value;
  };
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    if (*last - *first > kMaxListed) return std::nullopt;
    for (int value = *first; value <= *last; ++value) numbers.push_back(value);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

absl::Status UnknownVerb(const std::string& word) {
  std::vector<std::string> known;
  for (const CommandDef& command : CommandTable()) {
    if (command.hidden) continue;
    known.push_back(command.name);
    if (*command.alias != '\0') known.push_back(command.alias);
  }
  return Unknown("verb", word, known);
}

std::string Nearest(std::string_view word,
                    const std::vector<std::string>& candidates) {
  std::string best;
  int least = static_cast<int>(word.size()) / 3 + 2;
  for (const std::string& candidate : candidates) {
    // An abbreviation is nearer than any typing error.
    const bool begins = word.size() >= 2 && candidate.rfind(word, 0) == 0;
    const int distance = begins ? 0 : EditDistance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace memtuned::ctl
