// SPDX-License-Identifier: Apache-2.0
// Aligned tables for people: text left, numbers right, two spaces between
// columns, no lines. Knows nothing of what the cells mean.
#ifndef MEMTUNED_CLIENT_CTL_TABLE_PRINTER_H_
#define MEMTUNED_CLIENT_CTL_TABLE_PRINTER_H_

#include <ostream>
#include <string>
#include <vector>

namespace memtuned::ctl {

enum class Align { kLeft, kRight };
enum class Tone { kPlain, kGood, kWarning, kBad, kFaint };

// One column. A flexible one is shortened when the table is too wide; one
// with a minimum keeps its place in tables that grow row by row.
struct Column {
  std::string title;
  Align align = Align::kLeft;
  bool flexible = false;
  int min_width = 0;
};

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;

  Cell(std::string text_in) : text(std::move(text_in)) {}  // NOLINT
  Cell(const char* text_in) : text(text_in) {}             // NOLINT
  Cell(std::string text_in, Tone tone_in)
      : text(std::move(text_in)), tone(tone_in) {}
};

// How a table is to look.
struct TableStyle {
  int width = 0;       // columns of the terminal; 0: never shorten
  bool color = false;  // ANSI colours
  std::string ellipsis = "...";
};

// `text` in the tone's colour, or unchanged without colour.
std::string Paint(const std::string& text, Tone tone, bool color);

// Collects rows, then prints them all aligned.
//
// Invariants: every row has as many cells as there are columns.
// Thread safety: caller's thread.
class TablePrinter {
 public:
  explicit TablePrinter(std::vector<Column> columns);

  // Missing cells become "-"; surplus ones are a bug and are dropped.
  void AddRow(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }

  // Prints the titles and all rows; no trailing blanks. With `titles` false
  // the rows alone, for tables that grow while they are read.
  void Print(std::ostream& out, const TableStyle& style,
             bool titles = true) const;

 private:
  std::vector<int> Widths(const TableStyle& style) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_TABLE_PRINTER_H_
