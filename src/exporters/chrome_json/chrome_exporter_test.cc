// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "exporters/exporter.h"
#include "model/testing/synthetic_run.h"

namespace lockstep::exporters {
namespace {

using model::Trace;
using model::testing::SyntheticOptions;
using model::testing::SyntheticRun;

// A run whose traces a test changes after they are made.
struct Changed : SyntheticRun {
  Changed(SyntheticOptions options, std::function<void(size_t, Trace&)> change)
      : SyntheticRun(std::move(options)), change_(std::move(change)) {}
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_TRY(SyntheticRun::load(i, trace));
    change_(i, trace);
    return {};
  }
  std::function<void(size_t, Trace&)> change_;
};

class ChromeExporterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder =
        ::testing::TempDir() + "chrome_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    path = folder + "/timeline.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  Result<ExportResult> write(model::TraceSource& source) {
    return find("chrome")->write(source, path, nullptr);
  }
  std::string content() {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t count(std::string_view what) {
    std::string text = content();
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
    return n;
  }
  // Runs the rules of timeline_rules.py over the output.
  void expect_accepted(size_t ranks) {
    std::string command = "python3 " LOCKSTEP_SOURCE_DIR "/src/exporters/chrome_json/timeline_rules.py " +
                          path + " --ranks " + std::to_string(ranks) + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string output;
    char line[512];
    while (std::fgets(line, sizeof(line), pipe)) output += line;
    EXPECT_EQ(::pclose(pipe), 0) << output;
  }
  size_t files_in_folder() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }
  std::string folder, path;
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
  EXPECT_EQ(count("\"ph\":\"s\",\"cat\":\"ranks\""), 24u);  // 20 all-reduces, 2 messages of each of 2 pairs
  EXPECT_EQ(count("\"ph\":\"t\",\"bp\":\"e\",\"cat\":\"ranks\""), 40u);
  EXPECT_EQ(count("\"cat\":\"cuda_driver\",\"name\":\"cuLaunchKernel\""), 40u);
  EXPECT_EQ(count("\"cat\":\"cuda_driver\",\"name\":\"cuGraphLaunch\""), 40u);
  EXPECT_EQ(count("\"ph\":\"s\",\"cat\":\"ac2g\""), 160u) << "to operations' kernels, and from launches";
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(ChromeExporterTest, OneRankSaysWhoItIs) {
  struct Second : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    size_t processes() const override { return 1; }
    Result<void> load(size_t, Trace& trace) override { return SyntheticRun::load(2, trace); }
  } run(SyntheticOptions{});
  ASSERT_TRUE(write(run));
  expect_accepted(1);
  EXPECT_EQ(count("\"distributedInfo\":{\"backend\": \"nccl\", \"rank\": 2, \"world_size\": 4}"), 1u);
}

TEST_F(ChromeExporterTest, ArgumentsAreThoseOfPyTorch) {
  SyntheticRun run(SyntheticOptions{});
  ASSERT_TRUE(write(run));
  EXPECT_EQ(
      count(
          "\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\"In msg nelems\":1024,\"Out msg "
          "nelems\":1024,"
          "\"In split size\":\"[]\",\"Out split size\":\"[]\",\"Group size\":4,\"Process Group Name\":\"0\","
          "\"Process Group Description\":\"default_pg\",\"Process Group Ranks\":\"[0, 1, 2, 3]\""),
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
  Changed run(SyntheticOptions{}, [](size_t, Trace& trace) {
    trace.calls.end_ns[5] = 0;
    trace.calls.start_ns[9] = 0;
    trace.channels.stop_seen_ns[3] = 0;
    trace.proxy_ops.end_ns[7] = 0;
    trace.proxy_steps.wait2_ns[2] = 0;
    for (auto& end : trace.ops.all(&model::OpTable::gpu_end_ns))
      end += end ? 3'500'000 : 0;  // kernels that cross
    for (size_t i = 0; i < trace.calls.size(); i += 7) trace.calls.end_ns[i] += 2'500'000;
  });
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"unfinished\":true"), 4u * 3);
  EXPECT_EQ(count("without_time"), 1u);
}

TEST_F(ChromeExporterTest, SeveralCallingThreads) {
  Changed run(SyntheticOptions{}, [](size_t, Trace& trace) {
    for (size_t i = trace.ops.size() / 2; i < trace.ops.size(); ++i) trace.ops.thread[i] = 0;
    for (size_t i = trace.calls.size() / 2; i < trace.calls.size(); ++i) trace.calls.thread[i] = 0;
    trace.ops.gpu_start_ns[0] = trace.calls.start_ns[trace.ops.call[0]];      // no arrow can be drawn
    trace.ops.gpu_start_ns[1] = trace.calls.start_ns[trace.ops.call[1]] - 9;  // nor backwards
  });
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"ph\":\"s\",\"cat\":\"ac2g\""), 4u * (18 + 20));
}

TEST_F(ChromeExporterTest, RanksThatAreUnknownOrTwiceGetTheirOwnTracks) {
  Changed run(SyntheticOptions{}, [](size_t i, Trace& trace) { trace.processes.rank[0] = i < 2 ? 1 : -1; });
  ASSERT_TRUE(write(run));
  expect_accepted(4);
  EXPECT_EQ(count("\"name\":\"process_labels\""), 16u);  // CPU, GPU, channels and network of each
  EXPECT_EQ(count("\"name\":\"process_name\",\"pid\":100001,"), 1u);
}

TEST_F(ChromeExporterTest, HostileTextStaysJson) {
  Changed run({.comm_name = "a\"b\\c\n\x01\xff\xc3\x28 \xe2\x82\xac"}, [](size_t, Trace& trace) {
    trace.threads.name[1] = trace.strings.intern("\"},{\"ph\":\"X\"");
    trace.ops.shape[0] = 12345;
    trace.ops.comm[1] = 12345;
    trace.calls.thread[2] = 12345;
    trace.ops.task[3] = trace.ops.call[3] = model::kNoRow;
    trace.proxy_steps.proxy_op[4] = 99999;
    trace.ops.gpu_end_ns[3] = 0;
  });
  ASSERT_TRUE(write(run));
  std::string command = "python3 -c 'import json,sys; json.load(open(sys.argv[1]))' " + path;
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(count("\\u0001\x3f\x3f( \xe2\x82\xac"), count("a\\\"b\\\\c"));
}

TEST_F(ChromeExporterTest, OneUnreadableProcessIsALossAllAreAnError) {
  struct Broken : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    size_t first_good = 2;
    Result<void> load(size_t i, Trace& trace) override {
      if (i < first_good) return Error{ErrorCode::kInvalidInput, "torn header", "x.lks"};
      return SyntheticRun::load(i, trace);
    }
  } run(SyntheticOptions{});
  ASSERT_TRUE(write(run));
  EXPECT_EQ(count("unreadable_process"), 1u);
  std::filesystem::remove(path);
  run.first_good = 4;
  EXPECT_FALSE(write(run));
  SyntheticRun empty({.ranks = 0});
  EXPECT_FALSE(write(empty));
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(ChromeExporterTest, NeverOverwritesItsInput) {
  struct Named : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    std::string file;
    std::string name() const override { return file; }
  } run(SyntheticOptions{});
  run.file = folder + "/./timeline.json";
  std::ofstream(path) << "input";
  auto result = write(run);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_EQ(content(), "input");
}

TEST_F(ChromeExporterTest, FullDiskLeavesNothingBehind) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{64 * 1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  SyntheticRun run({.ops = 2000});
  auto result = write(run);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(files_in_folder(), 0u);
  path = folder + "/absent/timeline.json";
  EXPECT_FALSE(write(run));
}

}  // namespace
}  // namespace lockstep::exporters
