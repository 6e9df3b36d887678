// SPDX-License-Identifier: Apache-2.0
// What the tests of exporters share: runs that a test changes, a folder of their own, scripts that judge an
// output.
#pragma once
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "exporters/exporter.h"
#include "model/testing/synthetic_run.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::exporters::testing {

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

// One process of the run alone.
struct OnlyRank : SyntheticRun {
  explicit OnlyRank(size_t rank) : SyntheticRun(SyntheticOptions{}), rank_(rank) {}
  size_t processes() const override { return 1; }
  Result<void> load(size_t, Trace& trace) override { return SyntheticRun::load(rank_, trace); }
  size_t rank_;
};

// The processes before `first_good` cannot be read.
struct Broken : SyntheticRun {
  explicit Broken(size_t first_good) : SyntheticRun(SyntheticOptions{}), first_good_(first_good) {}
  Result<void> load(size_t i, Trace& trace) override {
    if (i < first_good_) return Error{ErrorCode::kInvalidInput, "torn header", "x.lks"};
    return SyntheticRun::load(i, trace);
  }
  size_t first_good_;
};

// Says that it was opened from `file`.
struct Named : SyntheticRun {
  explicit Named(std::string file) : SyntheticRun(SyntheticOptions{}), file_(std::move(file)) {}
  std::string name() const override { return file_; }
  std::string file_;
};

// Events without an end, without a time, and some that cross others.
inline void unfinished_and_crossing(size_t, Trace& trace) {
  trace.calls.end_ns[5] = 0;
  trace.calls.start_ns[9] = 0;
  trace.channels.stop_seen_ns[3] = 0;
  trace.proxy_ops.end_ns[7] = 0;
  trace.proxy_steps.wait2_ns[2] = 0;
  for (auto& end : trace.ops.all(&model::OpTable::gpu_end_ns))
    end += end ? 3'500'000 : 0;  // kernels that cross
  for (size_t i = 0; i < trace.calls.size(); i += 7) trace.calls.end_ns[i] += 2'500'000;
}

// Calls of two threads; kernels that begin no later than their call.
inline void several_threads(size_t, Trace& trace) {
  for (size_t i = trace.ops.size() / 2; i < trace.ops.size(); ++i) trace.ops.thread[i] = 0;
  for (size_t i = trace.calls.size() / 2; i < trace.calls.size(); ++i) trace.calls.thread[i] = 0;
  trace.ops.gpu_start_ns[0] = trace.calls.start_ns[trace.ops.call[0]];      // no arrow can be drawn
  trace.ops.gpu_start_ns[1] = trace.calls.start_ns[trace.ops.call[1]] - 9;  // nor backwards
}

// CUPTI reports when every operation was on the GPU, but for the last one.
inline void last_one_open(size_t, Trace& trace) {
  model::OpTable& ops = trace.ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    ops.gpu_source[op] = static_cast<uint8_t>(model::GpuTimeSource::kCupti);
    if (ops.gpu_start_ns[op] != 0) continue;
    ops.gpu_start_ns[op] = ops.enqueued_ns[op] + 1'000;
    ops.gpu_end_ns[op] = ops.enqueued_ns[op] + 2'000;
  }
  ops.gpu_start_ns[ops.size() - 1] = ops.gpu_end_ns[ops.size() - 1] = 0;
}

// Texts that want to be markup, a formula or a statement, and numbers of rows that are not there.
inline constexpr char kHostileName[] = "a\"b\\c\n\x01\xff\xc3\x28 \xe2\x82\xac";
inline void hostile(size_t, Trace& trace) {
  trace.threads.name[1] = trace.strings.intern("\"},{\"ph\":\"X\"");
  if (trace.kernels.size() > 2) {
    trace.kernels.name[0] = trace.strings.intern(std::string(1 << 20, 'k') + "\xed\xa0\x80");
    trace.kernels.name[1] = trace.strings.intern("</script><img src=x onerror=alert(1)>");
    trace.kernels.name[2] = trace.strings.intern("=cmd|' /C calc'!A0, 1'); DROP TABLE op; --");
  }
  if (trace.marks.size() > 1) trace.marks.name[1] = trace.strings.intern("@SUM(1+1)\t\r\n\"");
  trace.ops.shape[0] = 12345;
  trace.ops.comm[1] = 12345;
  trace.calls.thread[2] = 12345;
  trace.ops.task[3] = trace.ops.call[3] = model::kNoRow;
  trace.proxy_steps.proxy_op[4] = 99999;
  trace.ops.gpu_end_ns[3] = 0;
}

class ExporterTest : public ::testing::Test {
 protected:
  static std::string content(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  // Runs a command; what it printed, and whether it went well.
  static std::pair<bool, std::string> command(const std::string& line) {
    std::FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return {false, "cannot start " + line};
    std::string output;
    char piece[512];
    while (std::fgets(piece, sizeof(piece), pipe)) output += piece;
    return {::pclose(pipe) == 0, output};
  }
  size_t files_in_folder() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }
  // What `write` gives when the disk is full after 64 KiB.
  template <class Write>
  static auto on_a_full_disk(Write&& write) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small{64 * 1024, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    auto result = write();
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    return result;
  }
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path();
};

}  // namespace lockstep::exporters::testing
