// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exporters/common/testing/exporter_test.h"
#include "tests/support/places.h"

namespace lockstep::exporters {
namespace {

using namespace exporters::testing;

class ChromeExporterTest : public ExporterTest {
 protected:
  void SetUp() override {
    ExporterTest::SetUp();
    path = folder + "/timeline.json";
  }

  Result<ExportResult> write(model::TraceSource& source) {
    return find("chrome")->write(source, path, nullptr);
  }
  std::string content() { return ExporterTest::content(path); }
  size_t count(std::string_view what) {
    std::string text = content();
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
    return n;
  }
  // What timeline_rules.py says of the output.
  std::pair<bool, std::string> judge(size_t ranks) {
    return command("python3 " LOCKSTEP_SOURCE_DIR "/src/exporters/chrome_json/timeline_rules.py " + path +
                   " --ranks " + std::to_string(ranks));
  }
  void expect_accepted(size_t ranks) {
    const auto [good, output] = judge(ranks);
    EXPECT_TRUE(good) << output;
  }
  std::string path;
};

TEST_F(ChromeExporterTest, SeveralRanks) {
  SyntheticRun run(SyntheticOptions{});
  auto result = write(run);
  ASSERT_TRUE(result) << result.error().message();
  expect_accepted(4);
  EXPECT_EQ(result->bytes, std::filesystem::file_size(path));
  EXPECT_EQ(result->events, count("\"ph\":"));
  EXPECT_EQ(count("\"cat\":\"kernel\""), 160u);
  EXPECT_EQ(count("\"cat\":\"kernel\",\"name\":\"void gemm<float, 4>(float*)\""), 80u) << "no operation's";
  EXPECT_EQ(count("\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device -> Pinned)\""), 20u);
  EXPECT_EQ(count("\"name\":\"record_param_comms\""), 88u);
  EXPECT_EQ(count("\"cat\":\"proxy_step\""), 4u * 20 * 16);
  EXPECT_EQ(count("ProfilerStep#1"), 4u);
  EXPECT_EQ(count("\"cat\":\"user_annotation\",\"name\":\"forward\""), 8u);
  EXPECT_EQ(count("\"cat\":\"user_annotation\",\"name\":\"prefetch\""), 8u);
  EXPECT_EQ(count("\"domain\":\"loader\""), 8u);
  EXPECT_EQ(count("\"name\":\"ranges started by python (4100)\""), 2u)
      << "beside the thread, a host's first rank";
  EXPECT_EQ(count("\"name\":\"+1 ranges started by python (4100)\""), 2u) << "they need not nest";
  EXPECT_EQ(count("\"ph\":\"s\",\"cat\":\"ranks\""), 24u);  // 20 all-reduces, 2 messages of each of 2 pairs
  EXPECT_EQ(count("\"ph\":\"t\",\"bp\":\"e\",\"cat\":\"ranks\""), 40u);
  EXPECT_EQ(count("\"cat\":\"cuda_driver\",\"name\":\"cuLaunchKernel\""), 40u);
  EXPECT_EQ(count("\"cat\":\"cuda_driver\",\"name\":\"cuGraphLaunch\""), 40u);
  EXPECT_EQ(count("\"ph\":\"s\",\"cat\":\"ac2g\""), 160u) << "to operations' kernels, and from launches";
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(ChromeExporterTest, OneRankSaysWhoItIs) {
  OnlyRank run(2);
  ASSERT_TRUE(write(run));
  expect_accepted(1);
  EXPECT_EQ(count("\"distributedInfo\":{\"backend\": \"nccl\", \"rank\": 2, \"world_size\": 4}"), 1u);
}

TEST_F(ChromeExporterTest, ArgumentsAreThoseOfPyTorch) {
  SyntheticRun run(SyntheticOptions{});
  ASSERT_TRUE(write(run));
  EXPECT_EQ(
      count("\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\"In msg nelems\":1024,\"Out msg "
            "nelems\":1024,\"In split size\":\"[]\",\"Out split size\":\"[]\",\"Group size\":4,\"Process "
            "Group Name\":\"0\",\"Process Group Description\":\"default_pg\",\"Process Group Ranks\":\"[0, "
            "1, 2, 3]\""),
      16u);
  EXPECT_EQ(count("\"Collective name\":\"send\",\"dtype\":\"BFloat16\""), 4u);
  EXPECT_EQ(count("\"Dst Rank\":"), 4u);
  EXPECT_EQ(count("\"Src Rank\":"), 4u);
}

TEST_F(ChromeExporterTest, NoCommsIdWithoutPyTorchsName) {
  SyntheticRun run({.comm_name = "my comm"});
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"Comms Id\""), 0u);
  EXPECT_EQ(count("\"Seq\""), 0u);
  EXPECT_EQ(count("\"lockstep comms_id\":\"8000000000000abc:coll:0\""), 8u);
}

TEST_F(ChromeExporterTest, HostOnlyCaptureHasNoKernels) {
  SyntheticRun run({.network = false, .gpu_times = false, .gpu_known = false});
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"cat\":\"kernel\""), 0u);
  EXPECT_EQ(count("\"ph\":\"C\""), 0u) << "nobody knows when operations ended";
  EXPECT_EQ(count("without_end"), 0u);
  EXPECT_EQ(count("\"cat\":\"ranks\""), 20u * 4 + 4 * 2);
}

TEST_F(ChromeExporterTest, CompressedByItsName) {
  path += ".gz";
  SyntheticRun run(SyntheticOptions{});
  auto result = write(run);
  ASSERT_TRUE(result);
  expect_accepted(4);
  EXPECT_EQ(content().substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(result->bytes, std::filesystem::file_size(path));
}

TEST_F(ChromeExporterTest, UnfinishedOverlappingAndUntimedEvents) {
  Changed run(SyntheticOptions{}, unfinished_and_crossing);
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"unfinished\":true"), 4u * 4);
  EXPECT_EQ(count("without_time"), 1u);
}

TEST_F(ChromeExporterTest, SeveralCallingThreads) {
  Changed run(SyntheticOptions{}, several_threads);
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"ph\":\"s\",\"cat\":\"ac2g\""), 4u * (18 + 20));
}

TEST_F(ChromeExporterTest, DrawsTheCountersOfHosts) {
  SyntheticRun run({.host_counters = true});
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"name\":\"node0: links and GPUs\""), 1u);
  EXPECT_EQ(count("\"name\":\"mlx5_0/1 sent\""), 2u * 3);
  EXPECT_EQ(count("\"args\":{\"GB/s\":25.000}"), 2u);
  EXPECT_EQ(count("\"args\":{\"count\":7}"), 2u);
  EXPECT_EQ(count("\"args\":{\"MHz\":1980}"), 2u);
  EXPECT_EQ(count("link_downed"), 0u) << "it never rose";
}

TEST_F(ChromeExporterTest, CountsWhatIsInFlightAndWhatTheGpuMoves) {
  SyntheticRun run(SyntheticOptions{});
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  // 20 all-reduces of each rank, one after the other; the sends and receives have no end.
  EXPECT_EQ(count("{\"ph\":\"C\",\"name\":\"operations in flight\",\"pid\":"), 4u * 20 * 2);
  EXPECT_EQ(count("\"args\":{\"count\":1}}"), 4u * 20);
  EXPECT_EQ(count("{\"ph\":\"C\",\"name\":\"bus bandwidth\",\"pid\":"), 4u * 20 * 2);
  EXPECT_EQ(count("\"args\":{\"GB/s\":0.061}}"), 4u * 2) << "4,096 bytes x 2 (4 - 1) / 4 in 100 us";
  EXPECT_EQ(count("\"args\":{\"GB/s\":0.000}}"), 4u * 20);
  EXPECT_EQ(count("\"kind\":\"without_end\",\"count\":8,"), 1u);
}

TEST_F(ChromeExporterTest, AnOpenOperationStaysInFlight) {
  Changed run(SyntheticOptions{}, last_one_open);
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"args\":{\"count\":1}}"), 4u * 22);
  EXPECT_EQ(count("\"args\":{\"count\":0}}"), 4u * 21);
  EXPECT_EQ(count("without_end"), 0u);
}

TEST_F(ChromeExporterTest, TheRulesSeeAWrongCounter) {
  SyntheticRun run(SyntheticOptions{});
  ASSERT_TRUE(write(run));
  const std::string good = content();
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"{\"count\":1}", "{\"count\":0}"},
                                 {"{\"count\":1}", "{\"count\":\"1\"}"},
                                 {"{\"count\":1}", "{}"},
                                 {"\"ph\":\"C\",", "\"ph\":\"C\",\"cat\":\"cpu_op\","}}) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_FALSE(judge(4).first) << to;
  }
}

TEST_F(ChromeExporterTest, RanksThatAreUnknownOrTwiceGetTheirOwnTracks) {
  Changed run(SyntheticOptions{}, [](size_t i, Trace& trace) { trace.processes.rank[0] = i < 2 ? 1 : -1; });
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"name\":\"process_labels\""), 16u);  // CPU, GPU, channels and network of each
  EXPECT_EQ(count("\"name\":\"process_name\",\"pid\":100001,"), 1u);
}

TEST_F(ChromeExporterTest, HostileTextStaysJson) {
  Changed run({.comm_name = kHostileName}, hostile);
  ASSERT_TRUE(write(run));
  const auto [good, output] = command("python3 -c 'import json,sys; json.load(open(sys.argv[1]))' " + path);
  EXPECT_TRUE(good) << output;
  EXPECT_EQ(count("\\u0001\x3f\x3f( \xe2\x82\xac"), count("a\\\"b\\\\c"));
}

TEST_F(ChromeExporterTest, OneUnreadableProcessIsALossAllAreAnError) {
  Broken run(2);
  ASSERT_TRUE(write(run));
  EXPECT_EQ(count("unreadable_process"), 1u);
  std::filesystem::remove(path);
  run.first_good_ = 4;
  EXPECT_FALSE(write(run));
  SyntheticRun empty({.ranks = 0});
  EXPECT_FALSE(write(empty));
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(ChromeExporterTest, NeverOverwritesItsInput) {
  Named run(folder + "/./timeline.json");
  std::ofstream(path) << "input";
  auto result = write(run);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_EQ(content(), "input");
}

TEST_F(ChromeExporterTest, FullDiskLeavesNothingBehind) {
  SyntheticRun run({.ops = 2000});
  auto result = on_a_full_disk([&] { return write(run); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(files_in_folder(), 0u);
  path = folder + "/absent/timeline.json";
  EXPECT_FALSE(write(run));
}

}  // namespace
}  // namespace lockstep::exporters
