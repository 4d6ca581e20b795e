// SPDX-License-Identifier: Apache-2.0
// Tables: alignment, missing cells, width, colours.
#include "client/ctl/table_printer.h"

#include <gtest/gtest.h>

#include <sstream>

namespace memtuned::ctl {
namespace {

std::string Print(const TablePrinter& table, const TableStyle& style = {},
                  bool titles = true) {
  std::ostringstream out;
  table.Print(out, style, titles);
  return out.str();
}

TEST(TablePrinterTest, AlignsTextLeftAndNumbersRight) {
  TablePrinter table({{"ZONE"}, {"PAGES", Align::kRight}, {"STATE"}});
  table.AddRow({"0/Normal", "7", "ready"});
  table.AddRow({"1/DMA", "123456", "initialising"});

  EXPECT_EQ(Print(table),
            "ZONE       PAGES  STATE\n"
            "0/Normal       7  ready\n"
            "1/DMA     123456  initialising\n");
}

TEST(TablePrinterTest, CountsThinSpacesAsOneColumn) {
  TablePrinter table({{"A", Align::kRight}, {"B"}});
  table.AddRow({"1\u2009234", "x"});
  table.AddRow({"12345", "y"});

  EXPECT_EQ(Print(table), "    A  B\n1\u2009234  x\n12345  y\n");
}

TEST(TablePrinterTest, ShowsMissingCellsAsDash) {
  TablePrinter table({{"A"}, {"B"}, {"C"}});
  table.AddRow({"x", ""});

  EXPECT_EQ(Print(table), "A  B  C\nx  -  -\n");
}

TEST(TablePrinterTest, LeavesNoBlanksAtLineEnds) {
  TablePrinter table({{"A"}, {"LONG-TITLE"}});
  table.AddRow({"x", "y"});

  EXPECT_EQ(Print(table), "A  LONG-TITLE\nx  y\n");
}

TEST(TablePrinterTest, ShortensFlexibleColumnsToTheWidth) {
  TablePrinter table({{"NAME"}, {"HELP", Align::kLeft, true}});
  table.AddRow({"first", "a sentence that is long"});

  EXPECT_EQ(Print(table, {.width = 20}), "NAME   HELP\nfirst  a sentence...\n");
}

TEST(TablePrinterTest, NeverShortensRigidColumns) {
  TablePrinter table({{"NAME"}, {"VALUE"}});
  table.AddRow({"a-long-name", "a-long-value"});

  EXPECT_EQ(Print(table, {.width = 10}),
            "NAME         VALUE\na-long-name  a-long-value\n");
}

TEST(TablePrinterTest, NeverShortensWithoutAWidth) {
  TablePrinter table({{"HELP", Align::kLeft, true}});
  table.AddRow({std::string(500, 'x')});

  EXPECT_EQ(Print(table), "HELP\n" + std::string(500, 'x') + "\n");
}

TEST(TablePrinterTest, ColoursCellsWithoutMovingThem) {
  TablePrinter table({{"A", Align::kRight}, {"B"}});
  table.AddRow({{"bad", Tone::kBad}, "x"});
  table.AddRow({"plain", "y"});

  EXPECT_EQ(Print(table, {.color = true}, false),
            "  \033[31mbad\033[0m  x\nplain  y\n");
}

TEST(TablePrinterTest, KeepsPlacesInTablesThatGrow) {
  TablePrinter table({{"A", Align::kRight, false, 6}, {"B"}});
  table.AddRow({"1", "x"});

  EXPECT_EQ(Print(table, {}, false), "     1  x\n");
}

}  // namespace
}  // namespace memtuned::ctl
