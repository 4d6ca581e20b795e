// SPDX-License-Identifier: Apache-2.0
// What the user typed, parsed and checked against the command table. Only
// invocation.cc knows the parser library.
#ifndef MEMTUNED_CLIENT_CTL_INVOCATION_H_
#define MEMTUNED_CLIENT_CTL_INVOCATION_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/command_table.h"

namespace memtuned::ctl {

enum class OutputFormat { kTable, kWide, kJson, kYaml };

// One command line. Thread safety: immutable once parsed.
struct Invocation {
  const CommandDef* command = nullptr;  // never null after ParseCommandLine
  std::map<std::string, std::vector<std::string>> options;  // by "--name"
  std::vector<std::string> arguments;

  bool Has(const std::string& option) const { return options.count(option); }
  // The last value given, else `fallback`.
  std::string Text(const std::string& option,
                   const std::string& fallback = "") const;
  // All values, ranges expanded, ascending, each once.
  std::vector<int> Numbers(const std::string& option) const;
  // All values, split at commas.
  std::vector<std::string> List(const std::string& option) const;
  double Seconds(const std::string& option, double fallback) const;
  OutputFormat output() const;
};

// Parses the arguments after the program's name.
// Errors: kInvalidArgument, naming what is wrong, what is allowed, and for an
// unknown verb or option the nearest one there is.
absl::StatusOr<Invocation> ParseCommandLine(
    const std::vector<std::string>& arguments);

// The output format that a command line asks for, even if the rest of it is
// wrong: says how its error is to be printed.
OutputFormat GuessOutput(const std::vector<std::string>& arguments);

// Whole numbers from "0", "0,2" or "4-7"; nothing when `text` is no such list
// or leaves min..max.
std::optional<std::vector<int>> ParseNumbers(std::string_view text, int min,
                                             int max);

// The error for a verb that does not exist, with the nearest one that does.
absl::Status UnknownVerb(const std::string& word);

// The candidate nearest to `word` by edit distance, "" when none is near.
std::string Nearest(std::string_view word,
                    const std::vector<std::string>& candidates);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_INVOCATION_H_
