// SPDX-License-Identifier: Apache-2.0
#include "cli/fleet/answer_text.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text/wrap.h"

namespace lockstep::cli::fleet {
namespace {

const store::FleetQuestion& question(std::string_view name) {
  for (const store::FleetQuestion& of : store::fleet_questions())
    if (of.name == name) return of;
  ADD_FAILURE() << name;
  return store::fleet_questions()[0];
}

store::FleetAnswer answer_with(std::vector<std::string> row) {
  store::FleetAnswer answer;
  answer.database = "fleet";
  answer.rows.push_back(std::move(row));
  return answer;
}

TEST(FleetAnswer, IsATable) {
  const std::string text = answer_text(
      question("hosts"),
      answer_with({"node-7", "late", "25", "0.96", "0.0925", "2.6e-16", "0", "1794162202000000000", "1.25"}),
      30);
  EXPECT_NE(text.find("and since when in 30 days of fleet:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("expected share"), std::string::npos) << text;
  EXPECT_NE(text.find("node-7  late    25  96.0 %           9.2 %  < 0.01 %              -  "
                      "2026-11-08 18:23:22 UTC        1.25"),
            std::string::npos)
      << text;
}

TEST(FleetAnswer, FitsANarrowTerminal) {
  setenv("COLUMNS", "80", 1);
  for (const store::FleetQuestion& of : store::fleet_questions()) {
    std::vector<std::string> row;
    for (const store::FleetColumn& column : of.columns)
      row.emplace_back(column.kind == store::FleetColumn::Kind::kText   ? "NVIDIA H200"
                       : column.kind == store::FleetColumn::Kind::kTime ? "1794162202000000000"
                                                                        : "28");
    const std::string text = answer_text(of, answer_with(row), 30);
    const std::string rows = text.substr(text.find("\n\n"));
    for (const std::string_view line : lines(rows))
      EXPECT_LE(columns(line), size_t{80}) << of.name << ": " << line;
  }
  unsetenv("COLUMNS");
}

TEST(FleetAnswer, WritesVersionsAndSizesAsPeopleDo) {
  const std::string text = answer_text(
      question("busbw"),
      answer_with({"H100", "AllReduce", "28", "64", "8", "22304", "12", "301.7", "290", "310.5"}), 7);
  for (const char* part : {"from 128 MiB", "2.23.4", "302", "busbw GB/s"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(
      answer_text(question("busbw"), answer_with({"", "x", "0", "2", "1", "2708", "1", "1", "1", "1"}), 7)
          .find("2.7.8"),
      std::string::npos);
}

TEST(FleetAnswer, SaysWhenThereIsNothing) {
  store::FleetAnswer none;
  none.database = "fleet";
  none.without_rollups = 12;
  EXPECT_EQ(
      answer_text(question("hosts"), none, 1),
      "no host stands out in 1 day of fleet\n\n12 runs of an earlier Lockstep could not be counted: push them "
      "again.\n");
}

TEST(FleetAnswer, ShowsHostileNamesAsText) {
  const std::string name("\x1b[2Jnode\xff\n\"}", 12);
  const store::FleetAnswer answer =
      answer_with({name + std::string(100'000, 'x'), "late", "2", "1", "0.5", "0", "0", "0", "nan"});
  const std::string text = answer_text(question("hosts"), answer, 30);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LT(text.size(), 3000u);
  const Json row = Json::parse(json_text(answer_json(question("hosts"), answer, 30)))["rows"][0];
  EXPECT_EQ(row["runs"], 2);
  EXPECT_EQ(row["changed_after_ns"], nullptr);
  EXPECT_EQ(row["lost_hours"], nullptr);
}

}  // namespace
}  // namespace lockstep::cli::fleet
