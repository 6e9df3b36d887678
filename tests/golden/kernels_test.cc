// SPDX-License-Identifier: Apache-2.0
// Eight H200s, recorded by a profiler plugin and by CUPTI at the same time. tests/data/cupti/train:
// data-parallel x tensor-parallel pairs; tests/data/cupti/graph: a CUDA graph of four all-reduces, captured
// once and replayed five times, between two eager ones. One channel of each kernel, no proxy events.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "analysis/analysis.h"
#include "analysis/overlap/overlap.h"
#include "golden/recorded_files.h"
#include "job/assemble/assemble.h"
#include "job/gather/gather.h"
#include "model/event_kind.h"
#include "model/names/kernel_name.h"
#include "readers/native/tail/live_tail.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

using model::kNoRow;
using model::Trace;

std::string directory() {
  static const test::TemporaryFolder all;
  static int runs = 0;
  const std::string path = all / std::to_string(runs++);
  std::filesystem::create_directories(path);
  return path;
}

// Of the recording that was opened last.
std::string& opened_folder() {
  static std::string folder;
  return folder;
}

// All ranks of a recording, as the tools open a run.
std::unique_ptr<model::TraceSource> open_recording(const std::string& job,
                                                   const RecordedOptions& options = {}) {
  const std::string to = opened_folder() = directory();
  std::vector<std::string> files;
  for (int rank = 0; rank < 8; ++rank) {
    const std::string from = LOCKSTEP_SOURCE_DIR "/tests/data/cupti/" + job + "/",
                      number = std::to_string(rank);
    auto written = write_recorded(from + "tape_rank" + number + ".jsonl.gz",
                                  from + "cupti_rank" + number + ".jsonl.gz", to, "rank" + number, options);
    EXPECT_TRUE(written) << written.error().message();
    for (const char* source : {".nccl.lks", ".cuda.lks"}) files.push_back(to + "/rank" + number + source);
  }
  auto source = readers::open(files);
  EXPECT_TRUE(source) << source.error().message();
  return source ? std::move(*source) : nullptr;
}

std::string losses(const Trace& trace) {
  std::string text;
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    text +=
        std::string(trace.strings[trace.losses.kind[i]]) + "=" + std::to_string(trace.losses.count[i]) + ' ';
  }
  return text;
}

struct Joined {
  size_t nccl = 0, joined = 0, ops = 0, timed = 0;
};
Joined count(const Trace& trace) {
  Joined joined;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    if (!model::is_nccl_kernel(trace.strings[trace.kernels.name[i]])) continue;
    ++joined.nccl;
    joined.joined += trace.kernels.op[i] != kNoRow;
  }
  joined.ops = trace.ops.size();
  for (const uint8_t source : trace.ops.all(&model::OpTable::gpu_source))
    joined.timed += source == static_cast<uint8_t>(model::GpuTimeSource::kCupti);
  return joined;
}

void expect_sound(const Trace& trace) {
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const uint32_t op = trace.kernels.op[i];
    if (op == kNoRow) continue;
    EXPECT_LE(trace.ops.gpu_start_ns[op], trace.kernels.start_ns[i]);
    EXPECT_GE(trace.ops.gpu_end_ns[op], trace.kernels.end_ns[i]);
    EXPECT_LE(trace.ops.launched_ns[op], trace.kernels.start_ns[i]);
    EXPECT_TRUE(model::may_run(model::work_of_kernel(trace.strings[trace.kernels.name[i]]),
                               trace.strings[trace.shapes.func[trace.ops.shape[op]]]));
  }
}

void load(model::TraceSource& source, size_t i, Trace& trace) {
  auto loaded = source.load(i, trace);
  ASSERT_TRUE(loaded) << loaded.error().message();
  auto assembled = job::assemble::assemble(trace);
  ASSERT_TRUE(assembled) << assembled.error().message();
}

TEST(Kernels, EachOfATrainingJobIsItsOperations) {
  auto source = open_recording("train");
  ASSERT_TRUE(source);
  ASSERT_EQ(source->processes(), 8u);
  size_t nccl = 0, joined = 0;
  for (size_t i = 0; i < 8; ++i) {
    Trace trace;
    load(*source, i, trace);
    const Joined of = count(trace);
    nccl += of.nccl;
    joined += of.joined;
    EXPECT_EQ(of.timed, of.ops) << "all of its operations ran in kernels";
    EXPECT_EQ(losses(trace).find("kernel"), std::string::npos) << losses(trace);
    expect_sound(trace);
  }
  EXPECT_EQ(nccl, 712u);
  EXPECT_EQ(joined, 712u);
}

// Communicator and function -> operations with a kernel's time, and those times together.
using KernelTimes = std::map<std::pair<uint64_t, std::string>, std::pair<uint64_t, double>>;

// Whoever follows the files while they grow gives the same kernels to the same operations.
TEST(Kernels, ReadAsTheyComeAreThoseOfTheirOperations) {
  using readers::native::LiveTail;
  auto source = open_recording("train");
  ASSERT_TRUE(source);
  const std::string folder = opened_folder();
  KernelTimes whole, live;
  for (size_t i = 0; i < 8; ++i) {
    Trace trace;
    load(*source, i, trace);
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      auto& [count, seconds] = whole[{trace.comms.comm_id[trace.ops.comm[op]],
                                      std::string(trace.strings[trace.shapes.func[trace.ops.shape[op]]])}];
      ++count;
      seconds += static_cast<double>(trace.ops.gpu_end_ns[op] - trace.ops.gpu_start_ns[op]) * 1e-9;
    }
    auto join = std::make_shared<readers::native::LaunchJoin>();
    join->expect_kernels();
    const std::string process = folder + "/rank" + std::to_string(i);
    auto nccl = LiveTail::open(process + ".nccl.lks", LiveTail::Depth::kAll, join);
    auto cuda = LiveTail::open(process + ".cuda.lks", LiveTail::Depth::kAll, join);
    ASSERT_TRUE(nccl && cuda);
    ASSERT_TRUE((*nccl)->refresh());
    for (const auto& [key, counts] : (*nccl)->tally()->counts()) {
      const auto& times = counts.gpu_seconds[static_cast<size_t>(readers::native::LiveSource::kKernel)];
      auto& [count, seconds] = live[{(*nccl)->process().comms[key.first].comm_id, key.second}];
      for (uint64_t bucket : times.counts) count += bucket;
      seconds += times.sum;
    }
  }
  EXPECT_EQ(live.size(), whole.size());
  for (const auto& [key, times] : whole) {
    EXPECT_EQ(live[key].first, times.first) << key.second;
    EXPECT_NEAR(live[key].second, times.second, 1e-6) << key.second;
  }
}

// By the call that was captured: the replays of each, in order of time.
std::map<uint32_t, std::vector<uint32_t>> replays_of(const Trace& trace) {
  std::map<uint32_t, std::vector<uint32_t>> replays;
  for (uint32_t op = 0; op < trace.ops.size(); ++op) {
    if ((trace.ops.flags[op] & model::kFlagGraphCaptured) != 0) replays[trace.ops.call[op]].push_back(op);
  }
  return replays;
}

// With and without the events by which NCCL itself tells of replays.
TEST(Kernels, EachReplayOfAGraphIsItsOperations) {
  for (const bool kernel_channels : {true, false}) {
    auto source = open_recording("graph", {.kernel_channels = kernel_channels});
    ASSERT_TRUE(source);
    size_t eager = 0, replayed = 0;
    for (size_t i = 0; i < 8; ++i) {
      Trace trace;
      load(*source, i, trace);
      EXPECT_EQ(losses(trace).find("kernel"), std::string::npos) << kernel_channels << ": " << losses(trace);
      expect_sound(trace);
      const Joined of = count(trace);
      EXPECT_EQ(of.joined, of.nccl);
      EXPECT_EQ(of.ops, 22u);
      EXPECT_EQ(of.timed, 22u);
      auto replays = replays_of(trace);
      ASSERT_EQ(replays.size(), 4u);
      int64_t before = 0;
      for (size_t n = 0; n < 5; ++n) {
        for (const auto& [call, ops] : replays) {
          ASSERT_EQ(ops.size(), 5u);
          EXPECT_GT(trace.ops.gpu_start_ns[ops[n]], before) << "replays and operations in their order";
          before = trace.ops.gpu_end_ns[ops[n]];
          EXPECT_GT(trace.ops.launched_ns[ops[n]], trace.calls.end_ns[call])
              << "its graph's launch, not its own";
        }
      }
      // Without NCCL's word on replays only what was called has a number: others may know of fewer replays.
      uint32_t next = 0;
      for (const uint32_t index : trace.ops.all(&model::OpTable::index)) {
        if (index == model::kNoIndex) continue;
        EXPECT_EQ(index, next++);
      }
      EXPECT_EQ(next, kernel_channels ? 22u : 6u);
      for (size_t k = 0; k < trace.kernels.size(); ++k) {
        if (trace.kernels.op[k] != kNoRow) ++(trace.kernels.graph[k] != 0 ? replayed : eager);
      }
    }
    EXPECT_EQ(eager, 16u);
    EXPECT_EQ(replayed, 160u);
  }
}

// KernelCh events stamp the same kernels on another clock. What they say of an operation without CUPTI has to
// agree with what CUPTI says with them.
TEST(Kernels, AgreeWithTheStampsOfTheirChannels) {
  for (const char* job : {"train", "graph"}) {
    auto both = open_recording(job);
    ASSERT_TRUE(both);
    for (size_t i = 0; i < 8; ++i) {
      Trace with, without;
      load(*both, i, with);
      ASSERT_TRUE(both->load(i, without));
      without.kernels = {};
      without.launches = {};
      ASSERT_TRUE(job::assemble::assemble(without));
      ASSERT_EQ(with.ops.size(), without.ops.size());
      size_t compared = 0;
      for (size_t op = 0; op < with.ops.size(); ++op) {
        ASSERT_EQ(with.ops.task[op], without.ops.task[op]);
        if (without.ops.gpu_end_ns[op] == 0) continue;
        ++compared;
        // The stamps are taken inside the kernel, and their conversion has a width of its own.
        constexpr int64_t kSlack = 20'000;
        EXPECT_GE(without.ops.gpu_start_ns[op] + without.ops.gpu_error_ns[op] + kSlack,
                  with.ops.gpu_start_ns[op]);
        EXPECT_LE(without.ops.gpu_end_ns[op] - without.ops.gpu_error_ns[op] - kSlack,
                  with.ops.gpu_end_ns[op]);
        EXPECT_EQ(with.ops.gpu_source[op], static_cast<uint8_t>(model::GpuTimeSource::kCupti));
      }
      EXPECT_GT(compared, with.ops.size() / 2) << job;
    }
  }
}

TEST(Kernels, WithoutLaunchCallsAreJoinedByTheirOrder) {
  auto source = open_recording("train", {.launch_calls = false}), with = open_recording("train");
  ASSERT_TRUE(source && with);
  for (size_t i = 0; i < 8; ++i) {
    Trace by_order, by_launch;
    load(*source, i, by_order);
    load(*with, i, by_launch);
    EXPECT_NE(losses(by_order).find("kernel_joined_by_order=89"), std::string::npos) << losses(by_order);
    ASSERT_EQ(by_order.ops.size(), by_launch.ops.size());
    for (size_t op = 0; op < by_order.ops.size(); ++op)
      EXPECT_EQ(by_order.ops.gpu_start_ns[op], by_launch.ops.gpu_start_ns[op]);
  }
}

TEST(Kernels, TellWhatOfCommunicationIsHidden) {
  auto source = open_recording("train", {.kernel_channels = false});
  ASSERT_TRUE(source);
  auto job = job::gather::gather(*source, {});
  ASSERT_TRUE(job) << job.error().message();
  const auto ranks = analysis::overlap::measure(*job);
  ASSERT_EQ(ranks.size(), 8u);
  for (const auto& rank : ranks) {
    EXPECT_GT(rank.computing_ns, 0);
    EXPECT_GT(rank.hidden_ns(), 0);
    EXPECT_GT(rank.exposed_ns, 0);
  }
}

}  // namespace
}  // namespace lockstep::golden
