// SPDX-License-Identifier: Apache-2.0
// Implementation of format.h.
#include "client/ctl/format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace memtuned::ctl {
namespace {

std::string Printf(const char* format, int digits, double value) {
  std::array<char, 400> buffer;
  const int length =
      std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return std::string(buffer.data(), static_cast<size_t>(length));
}

// Puts `glyph` between groups of three in a string of digits that may start
// with a sign and end in a fraction.
std::string Group(const std::string& number, std::string_view glyph) {
  const size_t start = number.find_first_of("0123456789");
  if (start == std::string::npos) return number;
  const size_t point = number.find('.', start);
  const size_t end = point == std::string::npos ? number.size() : point;
  std::string grouped = number.substr(0, start);
  for (size_t i = start; i < end; ++i) {
    if (i > start && (end - i) % 3 == 0) grouped += glyph;
    grouped += number[i];
  }
  return grouped + number.substr(end);
}

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

Glyphs Glyphs::Utf8() { return {"\u2009", " \u00b7 ", "\u2026"}; }

Glyphs Glyphs::Ascii() { return {}; }

Glyphs Glyphs::FromEnvironment() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    const bool utf8 = locale.find("UTF-8") != std::string_view::npos ||
                      locale.find("utf8") != std::string_view::npos ||
                      locale.find("utf-8") != std::string_view::npos;
    return utf8 ? Utf8() : Ascii();
  }
  return Ascii();
}

std::string Formatter::Count(int64_t value) const {
  return Group(std::to_string(value), glyphs_.group);
}

std::string Formatter::Decimal(double value, int digits) const {
  return Group(Printf("%.*f", digits, value), glyphs_.group);
}

std::string Formatter::Bytes(int64_t bytes) const {
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
  if (std::abs(static_cast<double>(bytes)) < 1024) {
    return std::to_string(bytes) + " B";
  }
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would print as 1024.0.
  while (std::abs(value) >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Printf("%.*f", 1, value) + " " + kUnits[unit];
}

std::string Formatter::Percent(double ratio) const {
  return Printf("%.*f", 1, ratio * 100) + " %";
}

std::string Formatter::Seconds(double seconds) const {
  struct Unit {
    double scale;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits = {
      {{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}}};
  if (seconds == 0) return "0 s";
  for (const Unit& unit : kUnits) {
    const double value = seconds * unit.scale;
    if (std::abs(value) < 0.9995 && unit.scale < 1e9) continue;
    const double size = std::abs(value);
    int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    if (unit.scale == 1e9) digits = 0;
    return Decimal(value, digits) + " " + unit.name;
  }
  return "0 s";
}

std::string Formatter::Age(double seconds) const {
  if (seconds < 0) seconds = 0;
  if (seconds < 9.95) return Printf("%.*f", 1, seconds) + " s";
  if (seconds < 120) return Printf("%.*f", 0, seconds) + " s";
  if (seconds < 7200) return Printf("%.*f", 0, seconds / 60) + " min";
  if (seconds < 172800) return Printf("%.*f", 0, seconds / 3600) + " h";
  return Printf("%.*f", 0, seconds / 86400) + " d";
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (const char byte : text) width += IsContinuation(byte) ? 0 : 1;
  return width;
}

std::string Shorten(std::string_view text, int width,
                    std::string_view ellipsis) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const int keep = std::max(0, width - DisplayWidth(ellipsis));
  int seen = 0;
  size_t end = 0;
  while (end < text.size()) {
    if (!IsContinuation(text[end]) && seen++ == keep) break;
    ++end;
  }
  return std::string(text.substr(0, end)) + std::string(ellipsis);
}

std::string NumberRanges(const std::vector<int>& numbers) {
  if (numbers.empty()) return kAbsent;
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (last > i) text += '-' + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

std::optional<double> ParseSeconds(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.empty() || unit == "s") return value;
  if (unit == "ms") return value / 1000;
  if (unit == "m" || unit == "min") return value * 60;
  if (unit == "h") return value * 3600;
  return std::nullopt;
}

}  // namespace memtuned::ctl
