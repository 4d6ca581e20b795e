// SPDX-License-Identifier: Apache-2.0
// The verb watch: follows the snapshots of all subjects at once and prints a
// row for each zone and sample, or the messages themselves as JSON lines.
#include <array>
#include <csignal>
#include <ctime>
#include <map>
#include <optional>

#include "client/ctl/labels.h"
#include "client/ctl/output.h"
#include "client/ctl/rates.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"
#include "client/ctl/watch_stream.h"

namespace memtuned::ctl {
namespace {

constexpr int kRowsBetweenTitles = 24;

volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int) { interrupted = 1; }

// SIGINT ends the watch instead of the process, while one is in scope.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = 0;
    struct sigaction action = {};
    action.sa_handler = OnInterrupt;
    sigaction(SIGINT, &action, &old_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &old_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_ = {};
};

// Turns snapshots into rows; remembers the one before for the rates.
class WatchTable {
 public:
  WatchTable(Session& session, bool several)
      : session_(session), several_(several) {}

  void Add(const v1::Snapshot& snapshot);
  void AddFellBehind(const std::string& subject, int64_t missed);

 private:
  struct Seen {
    google::protobuf::Timestamp time;
    ZoneCounters counters;
  };

  std::vector<Column> Columns() const;
  std::vector<Cell> Row(const v1::Snapshot& snapshot, const v1::Zone& zone);

  Session& session_;
  const bool several_;                // subjects: name each in its rows
  std::map<std::string, Seen> seen_;  // by the zone's resource name
  int rows_until_titles_ = 0;
};

std::vector<Column> WatchTable::Columns() const {
  std::vector<Column> columns = {{"TIME", Align::kLeft, false, 8}};
  if (several_) columns.push_back({"SUBJECT", Align::kLeft, false, 13});
  for (const Column& column :
       std::vector<Column>{{"ZONE", Align::kLeft, false, 8},
                           {"FREE", Align::kRight, false, 10},
                           {"PAGESET-PAGES", Align::kRight, false, 13},
                           {"BATCH", Align::kRight, false, 5},
                           {"PAGESET-HIGH", Align::kRight, false, 12},
                           {"BLOCKS/s", Align::kRight, false, 10},
                           {"REFILLS/s", Align::kRight, false, 9},
                           {"PAGES/REFILL", Align::kRight, false, 12},
                           {"FLUSHES/s", Align::kRight, false, 9},
                           {"LOCK-HOLDS/s", Align::kRight, false, 12},
                           {"HOLDS/BLOCK", Align::kRight, false, 11},
                           {"CONTENDED", Align::kRight, false, 9},
                           {"STATE", Align::kLeft, false, 5}}) {
    columns.push_back(column);
  }
  return columns;
}

std::string ClockText(const google::protobuf::Timestamp& time) {
  const std::time_t seconds = time.seconds();
  std::tm local = {};
  localtime_r(&seconds, &local);
  std::array<char, 16> text;
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

std::vector<Cell> WatchTable::Row(const v1::Snapshot& snapshot,
                                  const v1::Zone& zone) {
  const Formatter& format = session_.format();
  const Seen now = {snapshot.sample().time(), CountersOf(zone)};
  const auto before = seen_.find(zone.name());
  const double seconds =
      before == seen_.end() ? 0 : SecondsBetween(before->second.time, now.time);
  const bool known = seconds > 0;
  const ZoneCounters grown =
      known ? Since(before->second.counters, now.counters) : ZoneCounters();
  auto rate = [&](int64_t count) -> Cell {
    if (!known) return kAbsent;
    return format.Decimal(static_cast<double>(count) / seconds, 0);
  };
  const bool locks = zone.has_zone_lock();

  std::vector<Cell> cells = {ClockText(now.time)};
  if (several_) cells.emplace_back(snapshot.name());
  cells.insert(
      cells.end(),
      {ZoneLabel(zone.name()), format.Bytes(zone.free_bytes()),
       format.Count(zone.pagesets().pages_sum()),
       std::to_string(zone.pagesets().batch()),
       RangeText(zone.pagesets().high_min(), zone.pagesets().high_max()),
       rate(grown.blocks), rate(grown.refills),
       Ratio(grown.refilled_pages, grown.refills, format), rate(grown.flushes),
       locks ? rate(grown.lock_acquisitions) : Cell(kAbsent),
       Ratio(grown.lock_acquisitions, grown.blocks, format),
       ShareText(grown.lock_contended, grown.lock_acquisitions, format),
       ZoneStateCell(zone, format)});
  seen_[zone.name()] = now;
  return cells;
}

void WatchTable::Add(const v1::Snapshot& snapshot) {
  TablePrinter table(Columns());
  for (const v1::Zone& zone : snapshot.zones()) {
    table.AddRow(Row(snapshot, zone));
  }
  const bool titles = rows_until_titles_ <= 0;
  if (titles) rows_until_titles_ = kRowsBetweenTitles;
  rows_until_titles_ -= snapshot.zones_size();
  table.Print(session_.out(), session_.style(), titles);
}

void WatchTable::AddFellBehind(const std::string& subject, int64_t missed) {
  session_.out() << Paint(subject + ": fell behind, " +
                              session_.format().Count(missed) +
                              (missed == 1 ? " sample" : " samples") +
                              " missed",
                          Tone::kWarning, session_.style().color)
                 << '\n';
}

// Counts samples of each subject and stops at --count.
class Budget {
 public:
  explicit Budget(const Invocation& invocation) {
    const std::vector<int> counts = invocation.Numbers("--count");
    if (!counts.empty()) left_ = counts.back();
  }
  // Whether the subject has had all its samples.
  bool Spend(const std::string& subject) {
    return left_ && ++used_[subject] >= *left_;
  }

 private:
  std::optional<int> left_;
  std::map<std::string, int> used_;
};

absl::StatusOr<ExitCode> Follow(Session& session, WatchStreams& streams,
                                bool several) {
  WatchTable table(session, several);
  Budget budget(session.invocation());
  while (streams.open() > 0) {
    auto event = streams.Next([] { return interrupted != 0; });
    if (!event.ok()) return event.status();
    if (!event->has_value()) break;  // interrupted
    const WatchEvent& got = **event;
    if (session.for_scripts()) {
      session.PrintMessage(got.message, true);
    } else if (got.message.has_fell_behind()) {
      table.AddFellBehind(got.subject, got.message.fell_behind().missed());
    } else {
      table.Add(got.message.snapshot());
    }
    session.out().flush();
    if (!session.out()) break;  // nobody reads any more
    if (got.message.has_snapshot() && budget.Spend(got.subject)) {
      streams.Cancel(got.subject);
    }
  }
  return ExitCode::kDone;
}

}  // namespace

absl::StatusOr<ExitCode> RunWatch(Session& session) {
  auto connection = session.Connect();
  if (!connection.ok()) return connection.status();
  auto subjects = session.Subjects();
  if (!subjects.ok()) return subjects.status();
  const double interval = session.invocation().Seconds("--interval", 1);
  if (!session.for_scripts()) {
    std::string names;
    for (const std::string& subject : *subjects) {
      names += (names.empty() ? "" : ", ") + subject;
    }
    session.PrintHeading(names,
                         {"every " + session.format().Seconds(interval)});
  }

  const InterruptGuard guard;
  WatchStreams streams(**connection, interval);
  for (const std::string& subject : *subjects) streams.Start(subject);
  return Follow(session, streams, subjects->size() > 1);
}

}  // namespace memtuned::ctl
