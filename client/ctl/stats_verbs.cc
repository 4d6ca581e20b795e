// SPDX-License-Identifier: Apache-2.0
// The verb stats: every statistic of a snapshot, once or as rates. The names
// are those of the metrics endpoint.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/rates.h"
#include "client/ctl/second_sample.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"
#include "core/stats.h"

namespace memtuned::ctl {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

// "node=0 zone=Normal"; the subject is in the heading.
std::string LabelText(const v1::Stat& stat) {
  const std::map<std::string, std::string> sorted(stat.labels().begin(),
                                                  stat.labels().end());
  std::string text;
  for (const auto& [key, value] : sorted) {
    if (key == "subject") continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", key, "=", value);
  }
  return text;
}

// A value in the unit that the metric's name ends in.
std::string UnitText(const v1::Stat& stat, double value,
                     const Formatter& format) {
  if (EndsWith(stat.name(), "_bytes")) {
    return format.Bytes(static_cast<int64_t>(value));
  }
  if (EndsWith(stat.name(), "_seconds")) return format.Seconds(value);
  if (EndsWith(stat.name(), "_ratio")) return format.Percent(value);
  const bool whole = value == static_cast<double>(static_cast<int64_t>(value));
  return whole ? format.Count(static_cast<int64_t>(value))
               : format.Decimal(value, 3);
}

std::string HistogramText(const v1::Stat& stat, const Formatter& format) {
  const v1::Histogram& histogram = stat.histogram();
  if (histogram.count() == 0) return "none";
  const double mean = histogram.sum() / static_cast<double>(histogram.count());
  return format.Count(histogram.count()) + ", mean " +
         UnitText(stat, mean, format);
}

std::string StatText(const v1::Stat& stat, const Formatter& format) {
  switch (stat.kind_case()) {
    case v1::Stat::kValue:
      return UnitText(stat, stat.value(), format);
    case v1::Stat::kHistogram:
      return HistogramText(stat, format);
    default:
      return kAbsent;
  }
}

// How much a counter or a histogram's count grew; nothing for gauges.
std::optional<double> Growth(const v1::Stat& before, const v1::Stat& now) {
  if (now.type() == v1::STAT_TYPE_COUNTER) {
    return now.value() < before.value() ? now.value()
                                        : now.value() - before.value();
  }
  if (now.type() == v1::STAT_TYPE_HISTOGRAM) {
    return static_cast<double>(std::max<int64_t>(
        0, now.histogram().count() - before.histogram().count()));
  }
  return std::nullopt;
}

const char* HelpOf(const std::string& name) {
  for (const StatDef& def : StatTable()) {
    if (name == def.name) return def.help;
  }
  return "";
}

// Keeps the statistics whose name contains one of the arguments.
absl::Status Filter(const std::vector<std::string>& words,
                    google::protobuf::RepeatedPtrField<v1::Stat>& stats) {
  if (words.empty()) return absl::OkStatus();
  stats.erase(
      std::remove_if(stats.begin(), stats.end(),
                     [&](const v1::Stat& stat) {
                       return std::none_of(
                           words.begin(), words.end(), [&](const auto& word) {
                             return stat.name().find(word) != std::string::npos;
                           });
                     }),
      stats.end());
  if (!stats.empty()) return absl::OkStatus();
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "'" : ", '") + word + "'";
  }
  return absl::NotFoundError("no statistic's name contains " + text);
}

void PrintStats(Session& session, const v1::Snapshot& now,
                const v1::Snapshot* before) {
  const Formatter& format = session.format();
  std::vector<std::string> parts = session.SampleParts(now.sample());
  double seconds = 0;
  std::map<std::string, const v1::Stat*> earlier;
  std::vector<Column> columns = {
      {"STATISTIC"}, {"LABELS", Align::kLeft, true}, {"VALUE", Align::kRight}};
  if (before != nullptr) {
    seconds = SecondsBetween(before->sample().time(), now.sample().time());
    parts.push_back("over " + format.Seconds(seconds));
    columns.push_back({"PER-SECOND", Align::kRight});
    for (const v1::Stat& stat : before->stats()) {
      earlier[stat.name() + " " + LabelText(stat)] = &stat;
    }
  }
  if (session.wide()) columns.push_back({"HELP", Align::kLeft, true});

  session.PrintHeading(now.name(), parts);
  TablePrinter table(columns);
  for (const v1::Stat& stat : now.stats()) {
    const std::string labels = LabelText(stat);
    std::vector<Cell> cells = {stat.name(), labels, StatText(stat, format)};
    if (before != nullptr) {
      const auto found = earlier.find(stat.name() + " " + labels);
      const auto growth =
          found == earlier.end() ? std::nullopt : Growth(*found->second, stat);
      cells.push_back(growth && seconds > 0
                          ? format.Decimal(*growth / seconds, 1)
                          : std::string(kAbsent));
    }
    cells.push_back(HelpOf(stat.name()));
    cells.resize(columns.size(), Cell(""));
    table.AddRow(std::move(cells));
  }
  session.PrintTable(table);
}

absl::Status ReadStats(Session& session, Connection& connection,
                       const std::string& subject) {
  auto first = GetSnapshot(connection, subject, true);
  if (!first.ok()) return first.status();
  absl::StatusOr<v1::GetSnapshotResponse> last = *first;
  const bool rate = session.invocation().Has("--rate");
  if (rate) {
    last = SecondSample(
        connection, *first, session.invocation().Seconds("--rate", 1),
        [&] { return GetSnapshot(connection, subject, true); },
        [](const v1::GetSnapshotResponse& response) -> const v1::SampleInfo& {
          return response.snapshot().sample();
        });
    if (!last.ok()) return last.status();
  }
  for (auto* each : {&*first, &*last}) {
    absl::Status filtered = Filter(session.invocation().arguments,
                                   *each->mutable_snapshot()->mutable_stats());
    if (!filtered.ok()) return filtered;
  }
  if (session.for_scripts()) {
    if (rate) session.PrintMessage(*first);
    session.PrintMessage(*last);
  } else {
    PrintStats(session, last->snapshot(), rate ? &first->snapshot() : nullptr);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunStats(Session& session) {
  return ForEachSubject(
      session, [&](Connection& connection, const std::string& subject) {
        return ReadStats(session, connection, subject);
      });
}

}  // namespace memtuned::ctl
