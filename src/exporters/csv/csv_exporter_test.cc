// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exporters/common/testing/exporter_test.h"
#include "store/store.h"
#include "tests/support/places.h"

namespace lockstep::exporters {
namespace {

using namespace exporters::testing;
namespace fs = std::filesystem;

class TableExportersTest : public ExporterTest {
 protected:
  void SetUp() override {
    ExporterTest::SetUp();
    csv = folder + "/run.csv";
    json = folder + "/run.jsonl";
  }
  static Result<ExportResult> write(const char* format, model::TraceSource& source, const std::string& path) {
    return find(format)->write(source, path, nullptr);
  }
  // Reads the CSV and the other tables back and compares them cell by cell.
  static std::pair<bool, std::string> compare(const std::string& csv, const std::string& other) {
    return command("python3 " LOCKSTEP_SOURCE_DIR "/src/exporters/csv/testing/compare_tables.py " + csv +
                   " " + other);
  }
  std::string csv, json;
};

TEST_F(TableExportersTest, CellsAreThoseOfTraceDb) {
  SyntheticRun run(SyntheticOptions{});
  const auto written = write("csv", run, csv);
  ASSERT_TRUE(written) << written.error().message();
  ASSERT_TRUE(store::write_trace_db(run, folder + "/run.db", {}, nullptr));
  const auto [good, output] = compare(csv, folder + "/run.db");
  EXPECT_TRUE(good) << output;
  EXPECT_EQ(output, "comms: 4, kernels: 180, losses: 5, marks: 16, ops: 88, processes: 4, ranges: 16\n");
}

TEST_F(TableExportersTest, JsonLinesSayTheSame) {
  SyntheticRun run({.ops = 50});
  auto tables = write("csv", run, csv), lines = write("json", run, json);
  ASSERT_TRUE(tables && lines);
  EXPECT_EQ(tables->events, lines->events);
  const auto [good, output] = compare(csv, json);
  EXPECT_TRUE(good) << output;
}

TEST_F(TableExportersTest, HostileTextIsNoFormulaAndNoMarkup) {
  Changed run({.comm_name = kHostileName}, hostile);
  ASSERT_TRUE(write("csv", run, csv) && write("json", run, json));
  const auto [good, output] = compare(csv, json);
  EXPECT_TRUE(good) << output;
  const std::string kernels = content(csv + "/kernels.csv");
  EXPECT_NE(kernels.find("\"'=cmd|' /C calc'!A0, 1'); DROP TABLE op; --\""), std::string::npos);
  EXPECT_EQ(kernels.find(",=cmd"), std::string::npos);
  EXPECT_NE(content(csv + "/marks.csv").find("\"'@SUM(1+1)\t\r\n\"\"\""), std::string::npos);
  EXPECT_NE(content(json + "/marks.jsonl").find(R"("name":"@SUM(1+1)\u0009\u000d\u000a\"")"),
            std::string::npos);
}

// People look at tables with `head`.
TEST_F(TableExportersTest, TextHoldsNothingThatATerminalObeys) {
  SyntheticRun run({.comm_name = "a\x1b]0;x\x07\x7f\xc2\x9b"
                                 "31m\tb"});
  ASSERT_TRUE(write("csv", run, csv));
  EXPECT_NE(content(csv + "/comms.csv").find("\"a?]0;x???31m\tb\""), std::string::npos)
      << content(csv + "/comms.csv");
}

TEST_F(TableExportersTest, EveryColumnIsExplained) {
  SyntheticRun run(SyntheticOptions{});
  ASSERT_TRUE(write("json", run, json));
  const auto [good, output] = command(
      "python3 -c 'import json, pathlib, sys\n"
      "told = {}\n"
      "for line in open(sys.argv[1] + \"/columns.jsonl\"):\n"
      "  row = json.loads(line); assert row[\"meaning\"]; told.setdefault(row[\"table\"], "
      "[]).append(row[\"column\"])\n"
      "files = {p.stem: list(json.loads(p.open().readline())) for p in pathlib.Path(sys.argv[1]).iterdir() "
      "if p.stem != \"columns\"}\n"
      "assert told == files, (told, files)' " +
      json);
  EXPECT_TRUE(good) << output;
  // A meaning that reads like a formula would get an apostrophe.
  ASSERT_TRUE(write("csv", run, csv));
  EXPECT_EQ(content(csv + "/columns.csv").find("\"'"), std::string::npos);
}

TEST_F(TableExportersTest, ReplacesOnlyAFolderOfItsOwn) {
  SyntheticRun run(SyntheticOptions{});
  ASSERT_TRUE(write("csv", run, csv + "/"));
  ASSERT_TRUE(write("csv", run, csv));
  std::ofstream(csv + "/mine.txt") << "keep";
  auto refused = write("csv", run, csv);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(content(csv + "/mine.txt"), "keep");
  std::ofstream(json) << "a file";
  EXPECT_FALSE(write("json", run, json));
  EXPECT_EQ(content(json), "a file");
  EXPECT_EQ(files_in_folder(), 2u);
}

TEST_F(TableExportersTest, WhatComesIntoTheOlderFolderMeanwhileStays) {
  SyntheticRun run({.ops = 2});
  ASSERT_TRUE(write("csv", run, csv));
  const std::string before = content(csv + "/ops.csv");
  Changed meanwhile({.ops = 4}, [&](size_t, Trace&) { std::ofstream(csv + "/mine.txt") << "keep"; });
  auto refused = write("csv", meanwhile, csv);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(content(csv + "/mine.txt"), "keep");
  EXPECT_EQ(content(csv + "/ops.csv"), before);
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(TableExportersTest, UnreadableProcessesAndAFullDisk) {
  Broken some(2);
  ASSERT_TRUE(write("csv", some, csv));
  EXPECT_NE(content(csv + "/losses.csv").find(",,export,unreadable_process,"), std::string::npos);
  fs::remove_all(csv);
  Broken none(4);
  EXPECT_FALSE(write("csv", none, csv));
  SyntheticRun run({.ops = 2000});
  auto full = on_a_full_disk([&] { return write("csv", run, csv); });
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kIo);
  EXPECT_EQ(files_in_folder(), 0u);
}

}  // namespace
}  // namespace lockstep::exporters
