// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/table.h"

#include <gtest/gtest.h>

#include "base/text/units.h"
#include "cli/kit/progress.h"

namespace lockstep::cli {
namespace {

TEST(Table, AlignsByColumns) {
  Table table({"<name", "n"});
  table.add({"a", "1"});
  table.add(
      {"gr\xc3\xb6\xc3\x9f"
       "er",
       "1,000"});
  EXPECT_EQ(table.text("| "),
            "| name        n\n"
            "| ------  -----\n"
            "| a           1\n"
            "| gr\xc3\xb6\xc3\x9f"
            "er  1,000\n");
}

Table wide_table() {
  Table table({"rank", "<name", "~bytes", "~~~enqueue", "time"});
  table.add({"0", "a name of several words", "12 MiB", "1 us", "1,234 ms"});
  table.add({"1", "short", "1 MiB", "2 us", "1 ms"});
  return table;
}

TEST(Table, IsWholeWhereThereIsRoom) {
  EXPECT_EQ(wide_table().text("", 56), wide_table().text("", SIZE_MAX));
  EXPECT_EQ(wide_table().text("", SIZE_MAX).find("room"), std::string::npos);
}

TEST(Table, FoldsTextBeforeAColumnGoes) {
  EXPECT_EQ(wide_table().text("", 51),
            "rank  name                 bytes  enqueue      time\n"
            "----  ------------------  ------  -------  --------\n"
            "   0  a name of several   12 MiB     1 us  1,234 ms\n"
            "      words\n"
            "   1  short                1 MiB     2 us      1 ms\n");
}

TEST(Table, ColumnsGoByNeedAndAreNamed) {
  EXPECT_EQ(wide_table().text("", 42),
            "rank  name                 bytes      time\n"
            "----  ------------------  ------  --------\n"
            "   0  a name of several   12 MiB  1,234 ms\n"
            "      words\n"
            "   1  short                1 MiB      1 ms\n"
            "No room for enqueue; a wider terminal\n"
            "shows them.\n");
  const std::string narrow = wide_table().text("", 34);
  EXPECT_NE(narrow.find("No room for bytes, enqueue; "), std::string::npos) << narrow;
}

TEST(Table, GoesOnBelowItselfWhereNoColumnMayGo) {
  Table table({"<", "GPU 0", "GPU 1", "GPU 2"});
  table.add({"GPU 0", "-", "390", "391"});
  table.add({"GPU 1", "150 !", "-", "392"});
  EXPECT_EQ(table.text("  ", 22),
            "         GPU 0  GPU 1\n"
            "  -----  -----  -----\n"
            "  GPU 0      -    390\n"
            "  GPU 1  150 !      -\n"
            "\n"
            "         GPU 2\n"
            "  -----  -----\n"
            "  GPU 0    391\n"
            "  GPU 1    392\n");
}

TEST(Table, NoNumberIsCutHoweverNarrow) {
  const std::string narrow = wide_table().text("", 12);
  for (const char* kept : {"1,234 ms", "1 ms"}) EXPECT_NE(narrow.find(kept), std::string::npos) << narrow;
}

TEST(Table, FoldsWordsThatAreTooLong) {
  Table table({"<id", "n"});
  table.add({"0123456789abcdef\xc3\xb6\xc3\xb6\xc3\xb6yz", "7"});
  EXPECT_EQ(table.text("", 21),
            "id                  n\n"
            "------------------  -\n"
            "0123456789abcdef\xc3\xb6\xc3\xb6  7\n"
            "\xc3\xb6yz\n");
}

TEST(Units, AreShort) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(uint64_t{1} << 20), "1 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16 EiB");
  EXPECT_EQ(format_duration(-1), "-");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(12345), "12.3 us");
  EXPECT_EQ(format_duration(1.5e9), "1.50 s");
  EXPECT_EQ(format_duration(900e9), "15.0 min");
  EXPECT_EQ(format_duration(3 * 3600e9), "3.00 h");
  EXPECT_EQ(format_duration(30 * 24 * 3600e9), "30.0 days");
  EXPECT_EQ(format_percent(0.125), "12.5 %");
  EXPECT_EQ(format_time(1'700'000'000'000'000'000), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(plural(1, "process"), "1 process");
  EXPECT_EQ(plural(2, "process"), "2 processes");
  EXPECT_EQ(plural(2000, "file"), "2,000 files");
  EXPECT_EQ(plural(2, "copy"), "2 copies");
  EXPECT_EQ(plural(2, "day"), "2 days");
}

TEST(Progress, LineSurvivesAnyFraction) {
  EXPECT_EQ(progress_line("merging", 0.5, 3), "merging [###############...............]  50 %  3 s left");
  EXPECT_EQ(progress_line("x", -1, 3), "x [..............................]   0 %");
  EXPECT_EQ(progress_line("x", 7, 3), "x [##############################] 100 %  0 s left");
}

}  // namespace
}  // namespace lockstep::cli
