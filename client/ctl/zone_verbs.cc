// SPDX-License-Identifier: Apache-2.0
// The verb zones: sizes, watermarks and limits of each zone.
#include "client/ctl/labels.h"
#include "client/ctl/paging.h"
#include "client/ctl/subject_loop.h"
#include "client/ctl/verbs.h"

namespace memtuned::ctl {
namespace {

std::vector<Column> Columns(bool wide) {
  std::vector<Column> columns = {{"ZONE"},
                                 {"MANAGED", Align::kRight},
                                 {"FREE", Align::kRight},
                                 {"WMARK-MIN", Align::kRight},
                                 {"WMARK-LOW", Align::kRight},
                                 {"WMARK-HIGH", Align::kRight},
                                 {"BATCH", Align::kRight},
                                 {"PAGESET-HIGH min..max", Align::kRight},
                                 {"IN-PAGESETS", Align::kRight},
                                 {"LIMITS"},
                                 {"STATE"}};
  if (!wide) return columns;
  for (const char* title :
       {"PRESENT", "WMARK-PROMO", "BOOST", "DEPOT", "LARGEST-FREE-ORDER",
        "LOCK-HOLDS", "CONTENDED", "LOCK-WAIT", "HOLD-PAGES max"}) {
    columns.push_back({title, Align::kRight});
  }
  return columns;
}

std::string LargestFreeOrder(const v1::Zone& zone) {
  for (int order = zone.free_blocks_size(); order-- > 0;) {
    if (zone.free_blocks(order) > 0) return std::to_string(order);
  }
  return kAbsent;
}

void AddWide(const v1::Zone& zone, const Formatter& format,
             std::vector<Cell>& cells) {
  const v1::LockStats& lock = zone.zone_lock();
  const bool locks = zone.has_zone_lock();
  cells.insert(cells.end(),
               {format.Bytes(zone.present_bytes()),
                format.Bytes(zone.watermarks().promo_bytes()),
                format.Bytes(zone.watermarks().boost_bytes()),
                format.Bytes(zone.depot_bytes()), LargestFreeOrder(zone),
                locks ? format.Count(lock.acquisitions()) : kAbsent,
                locks ? ShareText(lock.contended(), lock.acquisitions(), format)
                      : kAbsent,
                locks ? format.Seconds(lock.wait_seconds()) : kAbsent,
                locks ? format.Count(lock.hold_pages_max()) : kAbsent});
}

void PrintZones(Session& session, const std::string& subject,
                const v1::ListZonesResponse& response,
                int64_t page_size_bytes) {
  const Formatter& format = session.format();
  session.PrintHeading(subject, session.SampleParts(response.sample()));
  TablePrinter table(Columns(session.wide()));
  for (const v1::Zone& zone : response.zones()) {
    const v1::Watermarks& marks = zone.watermarks();
    const v1::PagesetSummary& pagesets = zone.pagesets();
    std::vector<Cell> cells = {
        ZoneLabel(zone.name()),
        format.Bytes(zone.managed_bytes()),
        format.Bytes(zone.free_bytes()),
        format.Bytes(marks.min_bytes()),
        format.Bytes(marks.low_bytes()),
        format.Bytes(marks.high_bytes()),
        std::to_string(pagesets.batch()),
        RangeText(pagesets.high_min(), pagesets.high_max()),
        format.Bytes(pagesets.pages_sum() * page_size_bytes),
        LimitsCell(zone.limits()),
        ZoneStateCell(zone, format)};
    if (session.wide()) AddWide(zone, format, cells);
    table.AddRow(std::move(cells));
  }
  session.PrintTable(table);
}

}  // namespace

absl::StatusOr<ExitCode> RunZones(Session& session) {
  const ZoneFilter filter(session.invocation());
  return ForEachSubject(
      session,
      [&](Connection& connection, const std::string& subject) -> absl::Status {
        auto response = ListZones(connection, subject);
        if (!response.ok()) return response.status();
        absl::Status filtered =
            filter.Apply(subject, *response->mutable_zones());
        if (!filtered.ok()) return filtered;
        if (session.for_scripts()) {
          session.PrintMessage(*response);
          return absl::OkStatus();
        }
        auto page_size = PageSizeBytes(connection, subject);
        if (!page_size.ok()) return page_size.status();
        PrintZones(session, subject, *response, *page_size);
        return absl::OkStatus();
      });
}

}  // namespace memtuned::ctl
