// SPDX-License-Identifier: Apache-2.0
// Structured log lines over spdlog: an event and its fields, as text
// ("change subject=pools/default generation=12") or one JSON object a line.
// Below every other file of the daemon.
#ifndef MEMTUNED_DAEMON_LOG_H_
#define MEMTUNED_DAEMON_LOG_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace memtuned {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

using LogFields = std::vector<std::pair<std::string, std::string>>;

// Sends everything, also plain spdlog calls, to stderr.
// Errors: kInvalidArgument naming the accepted words.
absl::Status SetUpLogging(const std::string& level, const std::string& format);

// "debug", "info", "warning" or "error"; may be called while running.
absl::Status SetLogLevel(const std::string& level);

// One line. `event` is a fixed lower-case word; values are quoted and escaped
// as needed, so that no caller can forge a line or a field.
void LogEvent(LogLevel level, const std::string& event,
              const LogFields& fields);

// The text form without time and level.
std::string LogText(const std::string& event, const LogFields& fields);
// The members of the JSON form without time and level: "event":"x","k":"v".
std::string LogJson(const std::string& event, const LogFields& fields);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_LOG_H_
