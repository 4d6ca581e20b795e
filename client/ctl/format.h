// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them in tables: grouped counts, binary bytes,
// percentages, durations. Raw numbers belong in -o json, never here.
#ifndef MEMTUNED_CLIENT_CTL_FORMAT_H_
#define MEMTUNED_CLIENT_CTL_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memtuned::ctl {

// Characters that depend on what the terminal can show.
struct Glyphs {
  const char* group = "";         // between groups of three digits
  const char* separator = " - ";  // between the parts of a heading
  const char* ellipsis = "...";   // where text was cut

  // Thin spaces, middle dots and an ellipsis.
  static Glyphs Utf8();
  // No grouping, plain ASCII.
  static Glyphs Ascii();
  // Utf8() where LC_ALL, LC_CTYPE or LANG (the first one set) names UTF-8.
  static Glyphs FromEnvironment();
};

// What a table shows for a value the subject does not have.
inline constexpr const char* kAbsent = "-";

// Turns numbers into table cells. Thread safety: immutable.
class Formatter {
 public:
  explicit Formatter(Glyphs glyphs) : glyphs_(glyphs) {}

  const Glyphs& glyphs() const { return glyphs_; }

  // 48211 -> "48 211" with the group glyph between.
  std::string Count(int64_t value) const;
  // 1234.56, 1 -> "1 234.6".
  std::string Decimal(double value, int digits) const;
  // "0 B", "4.0 KiB", "256.0 GiB"; one decimal from KiB on.
  std::string Bytes(int64_t bytes) const;
  // 0.314 -> "31.4 %".
  std::string Percent(double ratio) const;
  // Time spans with three significant places: "250 ns", "1.50 ms", "12.0 s".
  std::string Seconds(double seconds) const;
  // Ages: "0.3 s", "12 s", "5 min", "3 h", "2 d".
  std::string Age(double seconds) const;

 private:
  Glyphs glyphs_;
};

// Columns that `text` (UTF-8) takes on a terminal. Counts code points: the
// texts of memtuned have no wide or combining characters.
int DisplayWidth(std::string_view text);

// The first `width` columns of `text`, ending in `ellipsis` if it was cut.
std::string Shorten(std::string_view text, int width,
                    std::string_view ellipsis);

// "0", "0-3,8" for ascending numbers; "-" for none.
std::string NumberRanges(const std::vector<int>& numbers);

// "10s", "300ms", "2m", "1.5" (seconds).
// Returns: seconds, nothing when `text` is no duration.
std::optional<double> ParseSeconds(std::string_view text);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_FORMAT_H_
