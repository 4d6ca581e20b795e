// SPDX-License-Identifier: Apache-2.0
// A spdlog formatter that writes time and level, and passes prepared members
// through. Prepared JSON starts with a marker no plain message starts with.
#include "daemon/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace memtuned {
namespace {

constexpr char kPrepared = '\x01';
std::atomic<bool> g_json{false};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// In double quotes; what could end a line or a field is escaped, as in JSON.
std::string QuotedString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&out, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string TextValue(const std::string& value) {
  const std::string quoted = QuotedString(value);
  const bool plain = !value.empty() && quoted.size() == value.size() + 2 &&
                     value.find_first_of(" =") == std::string::npos;
  return plain ? value : quoted;
}

class Formatter : public spdlog::formatter {
 public:
  explicit Formatter(bool json) : json_(json) {}

  void format(const spdlog::details::log_msg& message,
              spdlog::memory_buf_t& out) override {
    const std::string time =
        absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ",
                         absl::FromChrono(message.time), absl::UTCTimeZone());
    const std::string level(
        spdlog::level::to_string_view(message.level).data(),
        spdlog::level::to_string_view(message.level).size());
    std::string_view payload(message.payload.data(), message.payload.size());
    const bool prepared = !payload.empty() && payload.front() == kPrepared;
    if (prepared) payload.remove_prefix(1);
    std::string line;
    if (json_) {
      line =
          absl::StrCat("{\"time\":\"", time, "\",\"level\":\"", level, "\",");
      line += prepared
                  ? std::string(payload)
                  : "\"event\":\"log\",\"message\":" + QuotedString(payload);
      line += "}\n";
    } else {
      line = absl::StrCat(time, " ", level, " ");
      line += prepared ? std::string(payload)
                       : absl::Utf8SafeCEscape(std::string(payload));
      line += "\n";
    }
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Formatter>(json_);
  }

 private:
  const bool json_;
};

}  // namespace

std::string LogText(const std::string& event, const LogFields& fields) {
  std::string line = event;
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, " ", key, "=", TextValue(value));
  }
  return line;
}

std::string LogJson(const std::string& event, const LogFields& fields) {
  std::string line = "\"event\":" + QuotedString(event);
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, ",", QuotedString(key), ":", QuotedString(value));
  }
  return line;
}

absl::Status SetLogLevel(const std::string& level) {
  static const std::pair<const char*, LogLevel> kLevels[] = {
      {"debug", LogLevel::kDebug},
      {"info", LogLevel::kInfo},
      {"warning", LogLevel::kWarning},
      {"error", LogLevel::kError}};
  for (const auto& [name, value] : kLevels) {
    if (level == name) {
      spdlog::set_level(ToSpdlog(value));
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log level is '", absl::CEscape(level.substr(0, 64)),
                   "'; allowed debug, info, warning, error"));
}

absl::Status SetUpLogging(const std::string& level, const std::string& format) {
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("log format is '", absl::CEscape(format.substr(0, 64)),
                     "'; allowed text, json"));
  }
  g_json = format == "json";
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("memtuned", std::move(sink));
  logger->set_formatter(std::make_unique<Formatter>(g_json));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  return SetLogLevel(level);
}

void LogEvent(LogLevel level, const std::string& event,
              const LogFields& fields) {
  const auto spdlog_level = ToSpdlog(level);
  if (!spdlog::should_log(spdlog_level)) return;
  const std::string body =
      g_json ? LogJson(event, fields) : LogText(event, fields);
  spdlog::default_logger_raw()->log(spdlog_level,
                                    std::string(1, kPrepared) + body);
}

}  // namespace memtuned
