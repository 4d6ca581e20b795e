// SPDX-License-Identifier: Apache-2.0
// A token is base64 of "request-hash:first:second".
#include "daemon/rpc/paging.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/rpc/errors.h"

namespace memtuned {
namespace {

constexpr size_t kMaxTokenBytes = 128;

// FNV-1a: only tells apart requests of a caller who mixed them up.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

}  // namespace

absl::StatusOr<int> PageSize(int32_t size, int standard, int max) {
  if (size < 0 || size > max) {
    return BadField("page_size", absl::StrCat("is ", size, "; allowed 0 to ",
                                              max, ", 0 means ", standard));
  }
  return size == 0 ? standard : size;
}

std::string MakePageToken(const std::string& request, PagePosition position) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(Hash(request), ":", position.first, ":", position.second));
}

absl::StatusOr<PagePosition> ParsePageToken(const std::string& token,
                                            const std::string& request) {
  if (token.empty()) return PagePosition{0, 0};
  std::string text;
  PagePosition position;
  uint64_t hash = 0;
  std::vector<std::string> parts;
  if (token.size() <= kMaxTokenBytes &&
      absl::WebSafeBase64Unescape(token, &text)) {
    parts = absl::StrSplit(text, ':');
  }
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &hash) ||
      !absl::SimpleAtoi(parts[1], &position.first) ||
      !absl::SimpleAtoi(parts[2], &position.second) || position.first < 0 ||
      position.second < 0 || absl::WebSafeBase64Escape(text) != token) {
    return BadField("page_token",
                    absl::StrCat("is ", Quoted(token),
                                 "; allowed: next_page_token of a reply"));
  }
  if (hash != Hash(request)) {
    return BadField("page_token",
                    "belongs to another request; only page_size may differ "
                    "between pages");
  }
  return position;
}

}  // namespace memtuned
