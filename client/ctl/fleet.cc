// SPDX-License-Identifier: Apache-2.0
// Implementation of fleet.h.
#include "client/ctl/fleet.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "client/ctl/connection.h"
#include "client/ctl/line_buffer.h"
#include "client/ctl/output.h"
#include "client/ctl/rpc_error.h"
#include "core/base/mutex.h"

namespace memtuned::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDefaultParallel = 32;
constexpr int kOutcomeWidth = 11;  // "unreachable"
constexpr size_t kOutcomes = static_cast<size_t>(ExitCode::kInternal) + 1;

struct HostResult {
  ExitCode code = ExitCode::kDone;
  absl::Status status;  // why it failed
  double seconds = 0;
  std::string out, err;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// The documents that a verb printed, one after the other.
Json Documents(const std::string& text) {
  Json documents = Json::array();
  std::istringstream in(text);
  while (in >> std::ws && in.good()) {
    Json document;
    in >> document;
    documents.push_back(std::move(document));
  }
  return documents;
}

// All targets of one command line.
// Thread safety: Work() by several threads; the rest by the caller's.
class Fleet {
 public:
  Fleet(const Invocation& invocation, const std::vector<FleetTarget>& targets,
        const TlsFiles& tls, const Terminal& terminal)
      : invocation_(invocation),
        each_(invocation),
        targets_(targets),
        tls_(tls),
        terminal_(terminal),
        format_(terminal.glyphs) {
    // What a target's documents go into is YAML, not they themselves.
    if (for_scripts()) each_.options["--output"] = {"json"};
    for (const FleetTarget& target : targets) {
      width_ = std::max(width_, target.address.size());
    }
  }

  void Run(int parallel) {
    std::vector<std::thread> threads;
    const size_t n = std::min(targets_.size(), static_cast<size_t>(parallel));
    for (size_t i = 0; i < n; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
  }

  ExitCode Summarise() {
    MutexLock lock(mutex_);
    const double seconds = SecondsSince(start_);
    std::string text;
    Json counts = Json::object();
    for (const ExitCodeDef& def : ExitCodeTable()) {
      const size_t count = counts_[static_cast<size_t>(def.code)];
      if (count == 0) continue;
      counts[def.name] = count;
      text +=
          (text.empty() ? "" : ", ") + std::to_string(count) + " " + def.name;
    }
    if (for_scripts()) {
      PrintJson({{"summary",
                  {{"targets", targets_.size()},
                   {"outcomes", counts},
                   {"seconds", seconds}}}});
    } else {
      terminal_.out.flush();
      terminal_.err << targets_.size() << " targets: " << text << " in "
                    << format_.Seconds(seconds) << '\n';
    }
    return counts_[0] == targets_.size() ? ExitCode::kDone
                                         : ExitCode::kFindings;
  }

 private:
  bool for_scripts() const {
    return invocation_.output() == OutputFormat::kJson ||
           invocation_.output() == OutputFormat::kYaml;
  }
  bool streams() const {
    return invocation_.command->name == std::string_view("watch");
  }

  void Work() EXCLUDES(mutex_) {
    for (;;) {
      const size_t i = next_.fetch_add(1);
      if (i >= targets_.size()) return;
      const FleetTarget& target = targets_[i];
      const HostResult result = RunOne(target);
      MutexLock lock(mutex_);
      ++counts_[static_cast<size_t>(result.code)];
      Print(target.address, result);
    }
  }

  HostResult RunOne(const FleetTarget& target) EXCLUDES(mutex_) {
    const auto start = std::chrono::steady_clock::now();
    std::ostringstream out, err;
    LineBuffer lines([&](const std::string& line) {
      MutexLock lock(mutex_);
      PrintLine(target.address, line);
    });
    if (streams()) out.std::ostream::rdbuf(&lines);
    const Terminal terminal = {out, err, false, 0, terminal_.glyphs};
    Route route = {target.address, tls_, /*one_deadline=*/true};
    if (!target.server_name.empty() && route.tls.server_name.empty()) {
      route.tls.server_name = target.server_name;
    }
    Session session(each_, terminal, std::move(route));
    const absl::StatusOr<ExitCode> outcome = invocation_.command->run(session);
    HostResult result;
    result.code = outcome.ok() ? *outcome : ExitCodeOf(outcome.status());
    result.status = outcome.status();
    result.seconds = SecondsSince(start);
    result.out = out.str();
    result.err = err.str();
    return result;
  }

  void Print(const std::string& target, const HostResult& result)
      REQUIRES(mutex_) {
    if (for_scripts()) {
      PrintResultJson(target, result);
    } else if (!result.status.ok() ||
               invocation_.command->subjects == SubjectUse::kOne) {
      PrintRow(target, result);
    } else if (!streams()) {
      if (printed_) terminal_.out << '\n';
      terminal_.out << result.out;
    }
    printed_ = true;
    terminal_.out.flush();
    terminal_.err << result.err;
  }

  void PrintResultJson(const std::string& target, const HostResult& result)
      REQUIRES(mutex_) {
    Json row = {{"target", target},
                {"outcome", GetExitCode(result.code).name},
                {"exit_code", static_cast<int>(result.code)},
                {"seconds", result.seconds}};
    if (!result.status.ok()) {
      row["error"] = Json::parse(ErrorJson(result.status))["error"];
    }
    if (!streams()) row["documents"] = Documents(result.out);
    PrintJson(row);
  }

  // TARGET  OUTCOME  TIME  what the verb or the error says in its first line
  void PrintRow(const std::string& target, const HostResult& result)
      REQUIRES(mutex_) {
    std::string detail = result.out.substr(0, result.out.find('\n'));
    const std::string separator = terminal_.glyphs.separator;
    const size_t parts = detail.find(separator);
    if (parts != std::string::npos) {
      detail = detail.substr(parts + separator.size());
    }
    std::vector<std::string> lines = {detail};
    if (!result.status.ok()) lines = ErrorLines(result.status);
    std::ostream& out = terminal_.out;
    out << target << std::string(width_ - target.size() + 2, ' ') << std::left
        << std::setw(kOutcomeWidth) << GetExitCode(result.code).name << "  "
        << std::right << std::setw(8) << format_.Seconds(result.seconds) << "  "
        << lines[0] << '\n';
    for (size_t i = 1; i < lines.size(); ++i) out << "  " << lines[i] << '\n';
  }

  void PrintLine(const std::string& target, const std::string& line)
      REQUIRES(mutex_) {
    if (for_scripts()) {
      PrintJson({{"target", target}, {"document", Json::parse(line)}});
    } else {
      terminal_.out << target << ": " << line << '\n';
    }
    terminal_.out.flush();
  }

  void PrintJson(const Json& json) REQUIRES(mutex_) {
    PrintDocument(terminal_.out, json.dump(),
                  invocation_.output() == OutputFormat::kYaml);
  }

  const Invocation& invocation_;
  Invocation each_;  // as each target's session sees it
  const std::vector<FleetTarget>& targets_;
  const TlsFiles& tls_;
  const Terminal& terminal_;
  const Formatter format_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  size_t width_ = 0;
  std::atomic<size_t> next_{0};
  Mutex mutex_;
  bool printed_ GUARDED_BY(mutex_) = false;
  std::array<size_t, kOutcomes> counts_ GUARDED_BY(mutex_) = {};
};

// A change of many daemons is worth a question.
absl::Status Confirm(const Invocation& invocation, size_t targets,
                     const Terminal& terminal) {
  const bool changes = invocation.command->subjects == SubjectUse::kOne &&
                       !invocation.Has("--dry-run");
  if (!changes || targets < 2 || invocation.Has("--yes")) {
    return absl::OkStatus();
  }
  const std::string what = std::string(invocation.command->name) + " on " +
                           std::to_string(targets) + " targets";
  if (isatty(STDIN_FILENO) != 1) {
    return absl::InvalidArgumentError(what + " needs --yes");
  }
  terminal.out.flush();
  terminal.err << what << "? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes"
             ? absl::OkStatus()
             : absl::CancelledError("nothing was done");
}

}  // namespace

absl::StatusOr<ExitCode> RunFleet(const Invocation& invocation,
                                  const std::vector<FleetTarget>& targets,
                                  const TlsFiles& tls,
                                  const Terminal& terminal) {
  const absl::Status confirmed = Confirm(invocation, targets.size(), terminal);
  if (!confirmed.ok()) return confirmed;
  const std::vector<int> parallel = invocation.Numbers("--parallel");
  Fleet fleet(invocation, targets, tls, terminal);
  fleet.Run(parallel.empty() ? kDefaultParallel : parallel.back());
  return fleet.Summarise();
}

}  // namespace memtuned::ctl
