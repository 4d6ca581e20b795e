// SPDX-License-Identifier: Apache-2.0
// The verb pagesets: a row for each zone, or for each CPU of each zone.
#include <algorithm>
#include <map>

#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/rates.h"
#include "client/ctl/second_sample.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

absl::StatusOr<v1::ListPagesetsResponse> ListPagesets(
    Connection& connection, const std::string& subject, v1::PagesetView view) {
  v1::ListPagesetsRequest request;
  request.set_parent(subject);
  request.set_view(view);
  return CallAllPages(connection, &v1::StatsService::Stub::ListPagesets,
                      connection.stats(), request);
}

std::string Spread(const v1::MinMedianMax& spread) {
  return std::to_string(spread.min()) + "/" + std::to_string(spread.median()) +
         "/" + std::to_string(spread.max());
}

// Counters of each zone by name.
std::map<std::string, ZoneCounters> AllCounters(
    const v1::ListPagesetsResponse& response) {
  std::map<std::string, ZoneCounters> all;
  for (const v1::Zone& zone : response.zones()) {
    all[zone.name()] = CountersOf(zone);
  }
  return all;
}

// Prints totals, or with `before` what was added each second since then.
void PrintSummary(Session& session, const v1::ListPagesetsResponse& response,
                  const v1::ListPagesetsResponse* before) {
  const Formatter& format = session.format();
  std::map<std::string, ZoneCounters> earlier;
  std::vector<std::string> parts = session.SampleParts(response.sample());
  double seconds = 1;
  if (before != nullptr) {
    earlier = AllCounters(*before);
    seconds = SecondsBetween(before->sample().time(), response.sample().time());
    parts.push_back("over " + format.Seconds(seconds));
  }
  const std::string each = before == nullptr ? "" : "/s";
  auto amount = [&](bool present, int64_t count) -> Cell {
    if (!present) return kAbsent;
    if (before == nullptr) return format.Count(count);
    return format.Decimal(static_cast<double>(count) / seconds, 0);
  };

  session.PrintHeading(response.sample().subject(), parts);
  TablePrinter table({{"ZONE"},
                      {"CPUS", Align::kRight},
                      {"BATCH", Align::kRight},
                      {"PAGESET-HIGH", Align::kRight},
                      {"PAGES min/median/max", Align::kRight},
                      {"REFILLS" + each, Align::kRight},
                      {"PAGES/REFILL", Align::kRight},
                      {"FLUSHES" + each, Align::kRight},
                      {"LOCK-HOLDS" + each, Align::kRight},
                      {"CONTENDED", Align::kRight},
                      {"STATE"}});
  for (const v1::Zone& zone : response.zones()) {
    const v1::PagesetSummary& pagesets = zone.pagesets();
    const ZoneCounters counters = Since(earlier[zone.name()], CountersOf(zone));
    const bool flows = zone.has_flows();
    table.AddRow(
        {ZoneLabel(zone.name()), format.Count(pagesets.count()),
         std::to_string(pagesets.batch()),
         RangeText(pagesets.high_min(), pagesets.high_max()),
         Spread(pagesets.pages()), amount(flows, counters.refills),
         Ratio(counters.refilled_pages, counters.refills, format),
         amount(flows, counters.flushes),
         amount(zone.has_zone_lock(), counters.lock_acquisitions),
         ShareText(counters.lock_contended, counters.lock_acquisitions, format),
         ZoneStateCell(zone, format)});
  }
  session.PrintTable(table);
}

void PrintCpus(Session& session, const v1::ListPagesetsResponse& response) {
  session.PrintHeading(response.sample().subject(),
                       session.SampleParts(response.sample()));
  TablePrinter table({{"ZONE"},
                      {"CPU", Align::kRight},
                      {"PAGES", Align::kRight},
                      {"BATCH", Align::kRight},
                      {"PAGESET-HIGH", Align::kRight},
                      {"CLAMPED", Align::kRight},
                      {"PAGESET-HIGH min..max", Align::kRight},
                      {"PAGES-BY-ORDER", Align::kLeft, true}});
  for (const v1::Pageset& pageset : response.pagesets()) {
    std::string orders;
    for (const int pages : pageset.pages_by_order()) {
      orders += (orders.empty() ? "" : " ") + std::to_string(pages);
    }
    table.AddRow(
        {ZoneLabel(pageset.name()), std::to_string(pageset.cpu()),
         std::to_string(pageset.pages()), std::to_string(pageset.batch()),
         std::to_string(pageset.high()), std::to_string(pageset.high_clamped()),
         pageset.has_high_min() && pageset.has_high_max()
             ? RangeText(pageset.high_min(), pageset.high_max())
             : kAbsent,
         orders});
  }
  session.PrintTable(table);
}

void FilterPagesets(const ZoneFilter& filter,
                    google::protobuf::RepeatedPtrField<v1::Pageset>& pagesets) {
  pagesets.erase(
      std::remove_if(pagesets.begin(), pagesets.end(),
                     [&](const v1::Pageset& pageset) {
                       const std::string label = ZoneLabel(pageset.name());
                       const size_t slash = label.find('/');
                       if (slash == std::string::npos) return false;
                       return !filter.Matches(std::atoi(label.c_str()),
                                              label.substr(slash + 1));
                     }),
      pagesets.end());
}

absl::Status ReadCpus(Session& session, Connection& connection,
                      const std::string& subject) {
  auto response = ListPagesets(connection, subject, v1::PAGESET_VIEW_CPU);
  if (!response.ok()) return response.status();
  FilterPagesets(ZoneFilter(session.invocation()),
                 *response->mutable_pagesets());
  if (session.for_scripts()) {
    session.PrintMessage(*response);
  } else {
    PrintCpus(session, *response);
  }
  return absl::OkStatus();
}

absl::Status ReadSummary(Session& session, Connection& connection,
                         const std::string& subject) {
  const ZoneFilter filter(session.invocation());
  auto read = [&]() -> absl::StatusOr<v1::ListPagesetsResponse> {
    auto response =
        ListPagesets(connection, subject, v1::PAGESET_VIEW_ZONE_SUMMARY);
    if (!response.ok()) return response;
    const absl::Status filtered =
        filter.Apply(subject, *response->mutable_zones());
    if (!filtered.ok()) return filtered;
    return response;
  };
  auto first = read();
  if (!first.ok()) return first.status();
  absl::StatusOr<v1::ListPagesetsResponse> last = *first;
  const bool rate = session.invocation().Has("--rate");
  if (rate) {
    last = SecondSample(
        connection, *first, session.invocation().Seconds("--rate", 1), read,
        [](const v1::ListPagesetsResponse& response) -> const v1::SampleInfo& {
          return response.sample();
        });
    if (!last.ok()) return last.status();
  }
  if (!session.for_scripts()) {
    PrintSummary(session, *last, rate ? &*first : nullptr);
    return absl::OkStatus();
  }
  if (rate) session.PrintMessage(*first);
  session.PrintMessage(*last);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunPagesets(Session& session) {
  const bool by_cpu = session.invocation().Has("--cpu") || session.wide();
  if (by_cpu && session.invocation().Has("--rate")) {
    return absl::InvalidArgumentError(
        "--rate is about zones; allowed without --cpu and -o wide");
  }
  return ForEachSubject(
      session, [&](Connection& connection, const std::string& subject) {
        return by_cpu ? ReadCpus(session, connection, subject)
                      : ReadSummary(session, connection, subject);
      });
}

}  // namespace memtuned::ctl
