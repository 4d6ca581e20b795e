// SPDX-License-Identifier: Apache-2.0
// Pages of lists: sizes with limits, and opaque tokens that name a position
// and the request they belong to. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_PAGING_H_
#define MEMTUNED_DAEMON_RPC_PAGING_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace memtuned {

// A reply is cut here, below the 4 MiB a gRPC client accepts by default.
inline constexpr size_t kMaxReplyBytes = 3 << 20;

// Where a list goes on: what the two numbers mean is the list's own matter.
using PagePosition = std::pair<int64_t, int64_t>;

// Returns: `size`, or `standard` for 0.
// Errors: kInvalidArgument for one below 0 or above `max`.
absl::StatusOr<int> PageSize(int32_t size, int standard, int max);

// `request` is whatever must stay the same between pages.
std::string MakePageToken(const std::string& request, PagePosition position);

// Returns: {0, 0} for an empty token.
// Errors: kInvalidArgument for a token of another request or none at all.
absl::StatusOr<PagePosition> ParsePageToken(const std::string& token,
                                            const std::string& request);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_PAGING_H_
