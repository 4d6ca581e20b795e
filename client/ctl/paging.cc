// SPDX-License-Identifier: Apache-2.0
// Implementation of paging.h.
#include "client/ctl/paging.h"

namespace memtuned::ctl {

absl::StatusOr<v1::ListSubjectsResponse> ListSubjects(Connection& connection) {
  return CallAllPages(connection, &v1::TopologyService::Stub::ListSubjects,
                      connection.topology(), v1::ListSubjectsRequest());
}

absl::StatusOr<v1::ListZonesResponse> ListZones(Connection& connection,
                                                const std::string& subject) {
  v1::ListZonesRequest request;
  request.set_parent(subject);
  return CallAllPages(connection, &v1::StatsService::Stub::ListZones,
                      connection.stats(), request);
}

absl::StatusOr<v1::GetSnapshotResponse> GetSnapshot(Connection& connection,
                                                    const std::string& subject,
                                                    bool with_stats) {
  v1::GetSnapshotRequest request;
  request.set_name(subject);
  request.set_include_stats(with_stats);
  return CallAllPages(connection, &v1::StatsService::Stub::GetSnapshot,
                      connection.stats(), request);
}

}  // namespace memtuned::ctl
