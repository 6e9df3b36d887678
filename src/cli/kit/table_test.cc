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
}

TEST(Progress, LineSurvivesAnyFraction) {
  EXPECT_EQ(progress_line("merging", 0.5, 3), "merging [###############...............]  50 %  3 s left");
  EXPECT_EQ(progress_line("x", -1, 3), "x [..............................]   0 %");
  EXPECT_EQ(progress_line("x", 7, 3), "x [##############################] 100 %  0 s left");
}

}  // namespace
}  // namespace lockstep::cli
