// SPDX-License-Identifier: Apache-2.0
// Implementation of table_printer.h.
#include "client/ctl/table_printer.h"

#include <algorithm>
#include <numeric>

#include "client/ctl/format.h"

namespace memtuned::ctl {
namespace {

constexpr int kGap = 2;               // blanks between columns
constexpr int kMinFlexibleWidth = 8;  // a shortened column keeps this much

const char* ColorCode(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "\033[32m";
    case Tone::kWarning:
      return "\033[33m";
    case Tone::kBad:
      return "\033[31m";
    case Tone::kFaint:
      return "\033[2m";
    case Tone::kPlain:
      break;
  }
  return "";
}

// One printed line under construction: blanks are held back so that no line
// ends in them.
class Line {
 public:
  void Blanks(int count) { pending_ += count; }
  void Text(const std::string& text) {
    text_.append(static_cast<size_t>(pending_), ' ');
    pending_ = 0;
    text_ += text;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int pending_ = 0;
};

}  // namespace

std::string Paint(const std::string& text, Tone tone, bool color) {
  if (!color || tone == Tone::kPlain || text.empty()) return text;
  return ColorCode(tone) + text + "\033[0m";
}

TablePrinter::TablePrinter(std::vector<Column> columns)
    : columns_(std::move(columns)) {}

void TablePrinter::AddRow(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(kAbsent));
  for (Cell& cell : cells) {
    if (cell.text.empty()) cell.text = kAbsent;
  }
  rows_.push_back(std::move(cells));
}

std::vector<int> TablePrinter::Widths(const TableStyle& style) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width =
        std::max(columns_[i].min_width, DisplayWidth(columns_[i].title));
    for (const auto& row : rows_) {
      width = std::max(width, DisplayWidth(row[i].text));
    }
    widths.push_back(width);
  }
  if (style.width <= 0) return widths;

  const int gaps = kGap * std::max(0, static_cast<int>(columns_.size()) - 1);
  int excess =
      std::accumulate(widths.begin(), widths.end(), gaps) - style.width;
  for (size_t i = columns_.size(); i-- > 0 && excess > 0;) {
    if (!columns_[i].flexible) continue;
    const int least =
        std::max(kMinFlexibleWidth, DisplayWidth(columns_[i].title));
    const int cut = std::clamp(widths[i] - least, 0, excess);
    widths[i] -= cut;
    excess -= cut;
  }
  return widths;
}

void TablePrinter::Print(std::ostream& out, const TableStyle& style,
                         bool titles) const {
  const std::vector<int> widths = Widths(style);
  auto print_row = [&](auto cell_of) {
    Line line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line.Blanks(kGap);
      const Cell cell = cell_of(i);
      const std::string text = Shorten(cell.text, widths[i], style.ellipsis);
      const int padding = std::max(0, widths[i] - DisplayWidth(text));
      if (columns_[i].align == Align::kRight) line.Blanks(padding);
      line.Text(Paint(text, cell.tone, style.color));
      if (columns_[i].align == Align::kLeft) line.Blanks(padding);
    }
    out << line.text() << '\n';
  };
  if (titles) {
    print_row([&](size_t i) { return Cell(columns_[i].title, Tone::kFaint); });
  }
  for (const auto& row : rows_) print_row([&](size_t i) { return row[i]; });
}

}  // namespace memtuned::ctl
