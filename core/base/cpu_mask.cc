// SPDX-License-Identifier: Apache-2.0
// Parsing and printing of CPU lists.
#include "core/base/cpu_mask.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace memtuned {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

std::string_view Strip(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string Shown(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  const std::string_view head = text.substr(0, kMaxShown);
  return absl::StrCat(
      "'", absl::CHexEscape(absl::string_view(head.data(), head.size())), "'",
      text.size() > kMaxShown ? "..." : "");
}

absl::Status Bad(std::string_view text, std::string_view item,
                 const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("CPU list ", Shown(text), ": ", Shown(item), " ", why));
}

// One item of a list: numbers first..last; of each `group` numbers the first
// `used`.
struct Item {
  int first = 0;
  int last = 0;
  int used = 1;
  int group = 1;
};

// Takes a number from the front of `*rest`. False: no number there, or one
// that does not fit.
bool TakeNumber(std::string_view* rest, int* value) {
  const char* end = rest->data() + rest->size();
  if (rest->empty() || rest->front() < '0' || rest->front() > '9') return false;
  const auto [next, error] = std::from_chars(rest->data(), end, *value);
  if (error != std::errc()) return false;
  rest->remove_prefix(static_cast<size_t>(next - rest->data()));
  return true;
}

bool TakeChar(std::string_view* rest, char c) {
  if (rest->empty() || rest->front() != c) return false;
  rest->remove_prefix(1);
  return true;
}

// The grammar alone; limits are CheckItem's.
bool SplitItem(std::string_view rest, Item* item) {
  if (!TakeNumber(&rest, &item->first)) return false;
  item->last = item->first;
  if (rest.empty()) return true;
  if (!TakeChar(&rest, '-') || !TakeNumber(&rest, &item->last)) return false;
  if (rest.empty()) return true;
  if (TakeChar(&rest, ':') && !TakeNumber(&rest, &item->used)) return false;
  return TakeChar(&rest, '/') && TakeNumber(&rest, &item->group) &&
         rest.empty();
}

// Returns: what is wrong with the item, empty if nothing is.
std::string CheckItem(const Item& item, int max) {
  if (item.first > item.last) return "is a range that runs backwards";
  if (item.last > max) return absl::StrCat("is above the limit ", max);
  if (item.group < 1 || item.used < 1 || item.used > item.group) {
    return absl::StrCat("takes ", item.used, " of each group of ", item.group,
                        "; allowed 1 to the size of the group");
  }
  return "";
}

std::vector<int> Members(const std::vector<bool>& set) {
  std::vector<int> members;
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i]) members.push_back(static_cast<int>(i));
  }
  return members;
}

absl::Status CheckText(std::string_view text, int max) {
  if (max < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("CPU list limit is ", max, "; must not be negative"));
  }
  if (text.size() > kMaxCpuListBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("CPU list ", Shown(text), " has ", text.size(),
                     " bytes; at most ", kMaxCpuListBytes, " are read"));
  }
  return absl::OkStatus();
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text, int max) {
  if (absl::Status status = CheckText(text, max); !status.ok()) return status;
  std::string_view rest = Strip(text);
  if (rest.empty()) return std::vector<int>();

  std::vector<bool> set(static_cast<size_t>(max) + 1);
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string_view token = Strip(rest.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    Item item;
    if (!SplitItem(token, &item)) {
      return Bad(text, token,
                 absl::StrCat("is not a number or range like 8, 0-3, 0-8/2 or "
                              "0-31:2/8 with numbers 0 to ",
                              max));
    }
    if (std::string why = CheckItem(item, max); !why.empty()) {
      return Bad(text, token, why);
    }
    for (int i = item.first; i <= item.last; ++i) {
      if ((i - item.first) % item.group < item.used) {
        set[static_cast<size_t>(i)] = true;
      }
    }
  }
  return Members(set);
}

absl::StatusOr<std::vector<int>> ParseCpuMask(std::string_view text, int max) {
  if (absl::Status status = CheckText(text, max); !status.ok()) return status;
  std::string_view rest = Strip(text);
  if (rest.empty()) return Bad(text, rest, "is no hexadecimal mask");

  std::vector<bool> set(static_cast<size_t>(max) + 1);
  size_t base = 0;
  for (bool more = true; more; base += 32) {
    const size_t comma = rest.rfind(',');
    more = comma != std::string_view::npos;
    const std::string_view word = more ? rest.substr(comma + 1) : rest;
    if (more) rest = rest.substr(0, comma);
    if (word.empty() || word.size() > 8) {
      return Bad(text, word, "is not 1 to 8 hexadecimal digits");
    }
    for (size_t i = 0; i < word.size(); ++i) {
      const int digit = HexDigit(word[word.size() - 1 - i]);
      if (digit < 0) return Bad(text, word, "is not hexadecimal");
      for (size_t bit = 0; bit < 4; ++bit) {
        if ((digit >> bit & 1) == 0) continue;
        const size_t cpu = base + i * 4 + bit;
        if (cpu >= set.size()) {
          return Bad(text, word,
                     absl::StrCat("has CPU ", cpu, "; the limit is ", max));
        }
        set[cpu] = true;
      }
    }
  }
  return Members(set);
}

std::string FormatCpuList(const std::vector<int>& cpus) {
  std::vector<int> sorted = cpus;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    absl::StrAppend(&text, sorted[i]);
    if (end - i > 1) absl::StrAppend(&text, "-", sorted[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace memtuned
