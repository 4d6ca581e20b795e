// SPDX-License-Identifier: Apache-2.0
// Lists that come in pages, read to their end and merged into one message.
#ifndef MEMTUNED_CLIENT_CTL_PAGING_H_
#define MEMTUNED_CLIENT_CTL_PAGING_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/ctl/connection.h"

namespace memtuned::ctl {

// A daemon that hands out more pages than this does not count any more.
inline constexpr int kMaxPages = 100000;

// Calls `method` until next_page_token is empty. Repeated fields of all pages
// follow one another; other fields are those of the last page that has them.
// Errors: Call()'s; kInternal when the daemon repeats a page for ever.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallAllPages(
    Connection& connection,
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    Stub& stub, Request request) {
  Response merged;
  for (int page = 0; page < kMaxPages; ++page) {
    auto response = connection.Call(method, stub, request);
    if (!response.ok()) return response.status();
    const std::string token = response->next_page_token();
    response->clear_next_page_token();
    merged.MergeFrom(*response);
    if (token.empty()) return merged;
    if (token == request.page_token()) break;
    request.set_page_token(token);
  }
  return absl::InternalError("the daemon repeats pages of one list");
}

// Every subject.
absl::StatusOr<v1::ListSubjectsResponse> ListSubjects(Connection& connection);
// Every zone of `subject`.
absl::StatusOr<v1::ListZonesResponse> ListZones(Connection& connection,
                                                const std::string& subject);
// The whole snapshot; stats too with `with_stats`.
absl::StatusOr<v1::GetSnapshotResponse> GetSnapshot(Connection& connection,
                                                    const std::string& subject,
                                                    bool with_stats);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_PAGING_H_
