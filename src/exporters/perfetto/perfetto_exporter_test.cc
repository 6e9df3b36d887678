// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exporters/common/testing/exporter_test.h"
#include "tests/support/places.h"

namespace lockstep::exporters {
namespace {

using namespace exporters::testing;

class PerfettoExporterTest : public ExporterTest {
 protected:
  void SetUp() override {
    ExporterTest::SetUp();
    path = folder + "/timeline.pftrace";
    json = folder + "/timeline.json";
  }
  Result<ExportResult> write(model::TraceSource& source) {
    return find("perfetto")->write(source, path, nullptr);
  }
  // What timeline_rules.py says of the file, beside the JSON of the same run.
  std::pair<bool, std::string> judge() {
    return command("python3 " LOCKSTEP_SOURCE_DIR "/src/exporters/perfetto/timeline_rules.py " + path +
                   " --json " + json);
  }
  // The packets without bundles around them, in the place of the file.
  std::string write_plain(model::TraceSource& source) {
    EXPECT_TRUE(find("perfetto")->write(source, path + ".gz", nullptr));
    EXPECT_TRUE(command("gzip -d -f " + path + ".gz").first);
    return content(path);
  }
  // Writes both and compares them; what the rules counted.
  std::string expect_same_as_json(model::TraceSource& source) {
    const auto written = write(source);
    EXPECT_TRUE(written) << written.error().message();
    EXPECT_TRUE(find("chrome")->write(source, json, nullptr));
    const auto [good, output] = judge();
    EXPECT_TRUE(good) << output.substr(0, 4000);
    return output;
  }
  std::string path, json;
};

TEST_F(PerfettoExporterTest, SaysWhatTheJsonSays) {
  SyntheticRun run(SyntheticOptions{});
  const std::string counts = expect_same_as_json(run);
  EXPECT_NE(counts.find("proxy_step: 1280"), std::string::npos) << counts;
  EXPECT_NE(counts.find("cpu_op: 88"), std::string::npos) << counts;
  EXPECT_NE(counts.find(" 8 counters with 320 values"), std::string::npos) << counts;
}

TEST_F(PerfettoExporterTest, DrawsTheCountersOfHosts) {
  SyntheticRun run({.host_counters = true});
  const std::string counts = expect_same_as_json(run);
  EXPECT_NE(counts.find(" 14 counters with 332 values"), std::string::npos) << counts;
}

TEST_F(PerfettoExporterTest, TakesAFifthOfTheBytesAndAQuarterUnpacked) {
  SyntheticRun run({.ops = 500});
  auto small = write(run), large = find("chrome")->write(run, json, nullptr);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(small->bytes, std::filesystem::file_size(path));
  EXPECT_LT(small->bytes * 5, large->bytes);
  EXPECT_LT(write_plain(run).size() * 4, large->bytes);
}

TEST_F(PerfettoExporterTest, OneRank) {
  OnlyRank run(2);
  expect_same_as_json(run);
}

TEST_F(PerfettoExporterTest, HostOnlyCapture) {
  SyntheticRun run({.network = false, .gpu_times = false, .gpu_known = false});
  const std::string counts = expect_same_as_json(run);
  EXPECT_EQ(counts.find("kernel:"), std::string::npos) << counts;
  EXPECT_NE(counts.find(" 0 counters"), std::string::npos) << counts;
}

TEST_F(PerfettoExporterTest, WithoutPyTorchsNames) {
  SyntheticRun run({.comm_name = "my comm"});
  expect_same_as_json(run);
}

TEST_F(PerfettoExporterTest, CompressedByItsName) {
  path += ".gz";
  SyntheticRun run(SyntheticOptions{});
  expect_same_as_json(run);
  EXPECT_EQ(content(path).substr(0, 2), "\x1f\x8b");
}

TEST_F(PerfettoExporterTest, UnfinishedOverlappingAndUntimedEvents) {
  Changed run(SyntheticOptions{}, unfinished_and_crossing);
  expect_same_as_json(run);
}

TEST_F(PerfettoExporterTest, AnOpenOperationStaysInFlight) {
  Changed run(SyntheticOptions{}, last_one_open);
  const std::string counts = expect_same_as_json(run);
  EXPECT_NE(counts.find(" 8 counters with 340 values"), std::string::npos) << counts;
}

TEST_F(PerfettoExporterTest, SeveralCallingThreads) {
  Changed run(SyntheticOptions{}, several_threads);
  expect_same_as_json(run);
}

TEST_F(PerfettoExporterTest, RanksThatAreUnknownOrTwice) {
  Changed run(SyntheticOptions{}, [](size_t i, Trace& trace) { trace.processes.rank[0] = i < 2 ? 1 : -1; });
  const std::string counts = expect_same_as_json(run);
  EXPECT_EQ(counts.rfind("16 processes", 0), 0u) << counts;
}

TEST_F(PerfettoExporterTest, MoreTracksThanASequenceHasClocks) {
  Changed run({.ranks = 2, .ops = 150}, [](size_t, Trace& trace) {
    for (uint32_t i = 0; i < trace.channels.size(); ++i)
      trace.channels.channel[i] = static_cast<uint16_t>(i % 200);
  });
  const std::string counts = expect_same_as_json(run);
  EXPECT_NE(counts.find(" 9 sequences"), std::string::npos) << counts;
}

TEST_F(PerfettoExporterTest, HostileTextStaysText) {
  Changed run({.comm_name = kHostileName}, hostile);
  expect_same_as_json(run);
}

TEST_F(PerfettoExporterTest, TheRulesSeeADifference) {
  SyntheticRun run(SyntheticOptions{});
  expect_same_as_json(run);
  std::string text = content(json);
  text.replace(text.find("\"posting us\":3.000"), 18, "\"posting us\":3.001");
  std::ofstream(json, std::ios::binary) << text;
  EXPECT_FALSE(judge().first);
  expect_same_as_json(run);
  std::string bytes = write_plain(run);
  EXPECT_TRUE(judge().first);
  bytes[bytes.rfind("\x48\x02") + 1] = 1;  // an end becomes a begin
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_FALSE(judge().first);
}

TEST_F(PerfettoExporterTest, TheRulesSeeAnotherCounter) {
  SyntheticRun run(SyntheticOptions{});
  expect_same_as_json(run);
  const std::string good = content(json);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"{\"count\":1}", "{\"count\":2}"},
                                 {"{\"GB/s\":0.061}", "{\"GB/s\":0.062}"},
                                 {"{\"GB/s\":0.061}", "{\"MB/s\":0.061}"}}) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(json, std::ios::binary) << text;
    EXPECT_FALSE(judge().first) << to;
  }
  std::ofstream(json, std::ios::binary) << good;
  std::string bytes = write_plain(run);
  EXPECT_TRUE(judge().first);
  bytes[bytes.rfind("\x48\x04") + 1] = 3;  // a value becomes an instant
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_FALSE(judge().first);
}

TEST_F(PerfettoExporterTest, OneUnreadableProcessIsALossAllAreAnError) {
  Broken run(2);
  expect_same_as_json(run);
  std::filesystem::remove(path);
  std::filesystem::remove(json);
  run.first_good_ = 4;
  EXPECT_FALSE(write(run));
  SyntheticRun empty({.ranks = 0});
  EXPECT_FALSE(write(empty));
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(PerfettoExporterTest, NeverOverwritesItsInput) {
  Named run(folder + "/./timeline.pftrace");
  std::ofstream(path) << "input";
  auto result = write(run);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_EQ(content(path), "input");
}

TEST_F(PerfettoExporterTest, FullDiskLeavesNothingBehind) {
  SyntheticRun run({.ops = 2000});
  auto result = on_a_full_disk([&] { return write(run); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(files_in_folder(), 0u);
}

}  // namespace
}  // namespace lockstep::exporters
