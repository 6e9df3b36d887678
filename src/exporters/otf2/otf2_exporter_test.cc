// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <tuple>

#include "exporters/exporter.h"
#include "exporters/otf2/operation_records.h"
#include "exporters/otf2/testing/read_archive.h"
#include "model/event_kind.h"
#include "model/testing/synthetic_run.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::exporters::otf2 {
namespace {

namespace fs = std::filesystem;
using model::Trace;
using model::testing::SyntheticOptions;
using model::testing::SyntheticRun;
using testing::ReadArchive;
using testing::ReadCollective;
using testing::ReadMessage;

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

class Otf2ExporterTest : public ::testing::Test {
 protected:
  Result<ExportResult> write(model::TraceSource& source) {
    return find("otf2")->write(source, path, nullptr);
  }
  ReadArchive written(model::TraceSource& source) {
    auto result = write(source);
    EXPECT_TRUE(result) << result.error().message();
    auto archive = testing::read_archive(path);
    EXPECT_TRUE(archive) << archive.error().message();
    if (!result || !archive) return {};
    EXPECT_EQ(archive->problems, std::vector<std::string>{});
    EXPECT_EQ(archive->events, result->events);
    EXPECT_EQ(std::system(("otf2-print " + path + "/traces.otf2 >/dev/null").c_str()), 0);
    return std::move(*archive);
  }
  size_t files_in_folder() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  static bool has_marker(const ReadArchive& archive, std::string_view text) {
    for (const std::string& marker : archive.markers) {
      if (marker.find(text) != std::string::npos) return true;
    }
    return false;
  }
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path();
  std::string path = folder + "/run.otf2";
};

TEST_F(Otf2ExporterTest, OperationsAreCollectivesAndMessages) {
  SyntheticRun run(SyntheticOptions{});
  const ReadArchive archive = written(run);
  ASSERT_EQ(archive.comms.size(), 1u);
  const testing::ReadComm& comm = archive.comms.at(0);
  EXPECT_EQ(comm.name, "default_pg:0");
  ASSERT_EQ(comm.members.size(), 4u);
  EXPECT_EQ(archive.ranks, comm.members);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const testing::ReadLocation& place = archive.locations.at(comm.members[rank]);
    EXPECT_EQ(place.name, "NCCL, rank " + std::to_string(rank));
    EXPECT_EQ(archive.groups.at(place.group).name, "rank " + std::to_string(rank));
    EXPECT_EQ(archive.groups.at(place.group).type, OTF2_LOCATION_GROUP_TYPE_PROCESS);
  }
  ASSERT_EQ(archive.collectives.size(), 80u);
  std::map<OTF2_LocationRef, uint32_t> numbers;
  for (const ReadCollective& collective : archive.collectives) {
    const uint32_t n = numbers[collective.location]++;
    const auto rank = static_cast<uint32_t>(
        std::find(comm.members.begin(), comm.members.end(), collective.location) - comm.members.begin());
    const uint64_t start = SyntheticRun::kStart + n * SyntheticRun::kOpPeriod + rank * 1000;
    EXPECT_EQ(collective.op, OTF2_COLLECTIVE_OP_ALLREDUCE);
    EXPECT_EQ(collective.root, OTF2_COLLECTIVE_ROOT_NONE);
    EXPECT_EQ(collective.begin, start + 40'000);
    EXPECT_EQ(collective.end, start + 140'000);
    EXPECT_EQ(collective.sent, (uint64_t{1} << (10 + n % 10)) * 4);
    EXPECT_EQ(collective.received, collective.sent);
  }
  ASSERT_EQ(archive.messages.size(), 8u);  // two of each of two pairs
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, int> ends;
  for (const ReadMessage& message : archive.messages) {
    const auto rank = static_cast<uint32_t>(
        std::find(comm.members.begin(), comm.members.end(), message.location) - comm.members.begin());
    EXPECT_EQ(message.is_send, rank % 2 == 0);
    EXPECT_EQ(message.peer, rank ^ 1);
    EXPECT_EQ(message.bytes, 1024u);
    ends[message.is_send ? std::tuple(rank, message.peer, message.tag)
                         : std::tuple(message.peer, rank, message.tag)] += message.is_send ? 1 : 16;
  }
  for (const auto& [message, both] : ends) EXPECT_EQ(both, 17);
}

TEST_F(Otf2ExporterTest, ThreadsAndStreamsHaveCallsAndKernels) {
  SyntheticRun run(SyntheticOptions{});
  const ReadArchive archive = written(run);
  EXPECT_EQ(archive.host_regions.at("ncclAllReduce").count, 80u);
  EXPECT_EQ(archive.host_regions.at("ncclAllReduce").ns, 80u * 19'000);
  EXPECT_EQ(archive.host_regions.at("AllReduce").ns, 80u * 100'000) << "where the ranks take part";
  EXPECT_EQ(archive.host_regions.at("ncclSend").count, 4u) << "no call says it: the enqueueing does";
  EXPECT_EQ(archive.host_regions.at("step").count, 8u);
  EXPECT_EQ(archive.host_regions.at("cuGraphLaunch").count, 40u);
  EXPECT_EQ(archive.host_regions.at("forward").count, 8u);
  EXPECT_EQ(archive.host_regions.at("prefetch").count, 8u);
  EXPECT_EQ(archive.stream_regions.at("void gemm<float, 4>(float*)").count, 80u);
  EXPECT_EQ(archive.stream_regions.at("Memcpy DtoH (Device -> Pinned)").ns, 20u * 10'000);
  uint64_t kernels = 0;
  for (const auto& [name, visits] : archive.stream_regions)
    kernels += name.starts_with("ncclKernel_") ? visits.count : 0;
  EXPECT_EQ(kernels, 80u);
  uint32_t streams = 0;
  for (const auto& [ref, location] : archive.locations) {
    const testing::ReadGroup& group = archive.groups.at(location.group);
    if (location.type != OTF2_LOCATION_TYPE_ACCELERATOR_STREAM) continue;
    ++streams;
    EXPECT_EQ(group.type, OTF2_LOCATION_GROUP_TYPE_ACCELERATOR);
    EXPECT_EQ(archive.groups.at(group.creator).type, OTF2_LOCATION_GROUP_TYPE_PROCESS);
  }
  EXPECT_EQ(streams, 12u);
  EXPECT_TRUE(has_marker(archive, "checkpoint"));
  EXPECT_TRUE(has_marker(archive, "3 clamped (capture): values too large for their field"));
  EXPECT_TRUE(has_marker(archive, "1 no_trace (read): extra.txt is no trace"));
}

TEST_F(Otf2ExporterTest, TheSameRunMakesTheSameArchive) {
  const SyntheticOptions options{.ranks = 9, .ops = 30};
  SyntheticRun run(options), again(options);
  ASSERT_TRUE(write(run));
  const std::string first = path;
  path = folder + "/again.otf2";
  ASSERT_TRUE(write(again));
  auto content = [](const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(first)) {
    // The anchor holds a number by which libotf2 tells traces apart.
    if (!entry.is_regular_file() || entry.path().filename() == "traces.otf2") continue;
    EXPECT_EQ(content(entry.path()), content(path / fs::relative(entry.path(), first))) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 9u * 2 * 3);
}

TEST_F(Otf2ExporterTest, HostOnlyCaptureHasTheTimesOfCalls) {
  SyntheticRun run({.network = false, .gpu_times = false, .gpu_known = false});
  const ReadArchive archive = written(run);
  ASSERT_EQ(archive.collectives.size(), 80u);
  for (const ReadCollective& collective : archive.collectives)
    EXPECT_EQ(collective.end - collective.begin, 19'000u);
  EXPECT_TRUE(archive.stream_regions.empty());
}

TEST_F(Otf2ExporterTest, OverlappingOperationsHaveFurtherLocations) {
  Changed run(SyntheticOptions{}, [](size_t, Trace& trace) {
    for (auto& end : trace.ops.all(&model::OpTable::gpu_end_ns)) end += end ? 3'500'000 : 0;
  });
  const ReadArchive archive = written(run);
  EXPECT_EQ(archive.collectives.size(), 80u);
  for (const ReadCollective& collective : archive.collectives)
    EXPECT_EQ(collective.end - collective.begin, 3'600'000u);
  std::set<std::string> names;
  for (const auto& [ref, location] : archive.locations) names.insert(location.name);
  EXPECT_TRUE(names.contains("+3 NCCL, rank 2"));
}

TEST_F(Otf2ExporterTest, OverlapsBeyondAllLocationsAreCutAndCounted) {
  Changed run({.ranks = 1, .ops = 200}, [](size_t, Trace& trace) {
    for (auto& end : trace.ops.all(&model::OpTable::gpu_end_ns)) end += end ? 1'000'000'000 : 0;
  });
  const ReadArchive archive = written(run);
  EXPECT_EQ(archive.collectives.size(), 200u);
  EXPECT_TRUE(has_marker(archive, "cut_short"));
}

TEST_F(Otf2ExporterTest, OperationsOfOneKernelFollowEachOther) {
  Changed run({.ops = 4}, [](size_t, Trace& trace) {
    for (auto& start : trace.ops.all(&model::OpTable::gpu_start_ns)) start = SyntheticRun::kStart;
    for (auto& end : trace.ops.all(&model::OpTable::gpu_end_ns)) end = SyntheticRun::kStart + 700;
  });
  const ReadArchive archive = written(run);
  ASSERT_EQ(archive.collectives.size(), 16u);
  uint64_t total = 0;
  for (const ReadCollective& collective : archive.collectives) {
    total += collective.end - collective.begin;
    EXPECT_EQ(collective.end, static_cast<uint64_t>(SyntheticRun::kStart + 700));
  }
  EXPECT_EQ(total, 4u * 700);
}

TEST_F(Otf2ExporterTest, MessagesOfOneKernelAreOneRegion) {
  Changed run({.ops = 40}, [](size_t, Trace& trace) {
    for (uint32_t op = 0; op < trace.ops.size(); ++op) {
      if (trace.ops.peer[op] < 0) continue;
      trace.ops.gpu_start_ns[op] = SyntheticRun::kStart + 100'000'000;
      trace.ops.gpu_end_ns[op] = SyntheticRun::kStart + 100'000'900;
    }
  });
  const ReadArchive archive = written(run);
  EXPECT_EQ(archive.host_regions.at("Send and receive").count, 4u);
  ASSERT_EQ(archive.messages.size(), 20u);
  for (const ReadMessage& message : archive.messages)
    EXPECT_EQ(message.time,
              static_cast<uint64_t>(SyntheticRun::kStart + 100'000'000 + (message.is_send ? 0 : 900)));
}

TEST_F(Otf2ExporterTest, RanksThatWereNotRecordedKeepTheirPlace) {
  struct Second : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    size_t processes() const override { return 1; }
    Result<void> load(size_t, Trace& trace) override { return SyntheticRun::load(2, trace); }
  } run(SyntheticOptions{});
  const ReadArchive archive = written(run);
  const testing::ReadComm& comm = archive.comms.at(0);
  ASSERT_EQ(comm.members.size(), 4u);
  EXPECT_EQ(archive.locations.at(comm.members[2]).name, "NCCL, rank 2");
  EXPECT_EQ(std::set<uint64_t>(comm.members.begin(), comm.members.end()).size(), 4u);
  for (const ReadMessage& message : archive.messages) EXPECT_EQ(message.peer, 3u);
}

TEST_F(Otf2ExporterTest, DevicesOfOneProcessAreRanksOfTheirOwn) {
  Changed run({.ranks = 1}, [](size_t, Trace& trace) {
    model::Comm second = trace.comms.row(0);
    trace.comms.ranks[0] = second.ranks = 2;
    second.rank = 1;
    second.device = 1;
    second.gpu = 1;
    const uint32_t row = trace.comms.append(second);
    for (uint32_t op = 1; op < trace.ops.size(); op += 2) trace.ops.comm[op] = row;
  });
  const ReadArchive archive = written(run);
  ASSERT_EQ(archive.comms.size(), 1u);
  ASSERT_EQ(archive.comms.at(0).members.size(), 2u);
  EXPECT_NE(archive.comms.at(0).members[0], archive.comms.at(0).members[1]);
  EXPECT_EQ(archive.ranks.size(), 2u);
}

TEST_F(Otf2ExporterTest, UnfinishedOperationsAreNoCollectives) {
  Changed run(SyntheticOptions{}, [](size_t, Trace& trace) {
    trace.ops.gpu_end_ns[3] = 0;
    trace.calls.end_ns[5] = 0;
    trace.calls.start_ns[9] = 0;
    trace.ops.gpu_start_ns[4] = 0;
    trace.calls.start_ns[trace.ops.call[4]] = 0;
    trace.tasks.start_ns[trace.ops.task[4]] = 0;
  });
  const ReadArchive archive = written(run);
  EXPECT_EQ(archive.collectives.size(), 4u * 18);
  EXPECT_TRUE(has_marker(archive, "4 unfinished (export)"));
  EXPECT_TRUE(has_marker(archive, "without_time (export)"));
}

TEST_F(Otf2ExporterTest, HostileTextAndNumbersStayAnArchive) {
  std::string comm(1 << 20, 'x');
  comm += '\0';
  Changed run({.comm_name = std::string("a\0b\xff\xc3\x28", 6) + comm}, [](size_t i, Trace& trace) {
    trace.threads.name[1] = trace.strings.intern(std::string(1 << 20, '\xff'));
    trace.processes.host[0] = trace.strings.intern(std::string("h\0st", 4));
    trace.ops.shape[0] = trace.ops.comm[1] = trace.calls.thread[2] = trace.ops.thread[5] = 12345;
    trace.ops.peer[2] = 2'000'000'000;
    trace.shapes.root[trace.ops.shape[3]] = -5;
    trace.ops.call[3] = trace.ops.task[3] = model::kNoRow;
    trace.ops.gpu_end_ns[6] = INT64_MAX;
    trace.ops.bytes[8] = UINT64_MAX;
    trace.comms.ranks[0] = i == 0 ? INT32_MAX : i == 1 ? -7 : 4;
    trace.comms.rank[0] = i == 3 ? -1 : 2;
    trace.processes.last_ns[0] = -1;
  });
  const ReadArchive archive = written(run);
  for (const auto& [ref, read] : archive.comms) {
    EXPECT_EQ(read.name.substr(0, 6), "a?b?\?(");
    EXPECT_LE(read.name.size(), 4096u);
  }
  EXPECT_TRUE(has_marker(archive, "cut_text"));
  EXPECT_TRUE(has_marker(archive, "large_comm"));
  EXPECT_TRUE(has_marker(archive, "misplaced_member"));
  EXPECT_TRUE(has_marker(archive, "without_record"));
}

TEST_F(Otf2ExporterTest, OneUnreadableProcessIsALossAllAreAnError) {
  struct Broken : SyntheticRun {
    using SyntheticRun::SyntheticRun;
    size_t first_good = 2;
    Result<void> load(size_t i, Trace& trace) override {
      if (i < first_good) return Error{ErrorCode::kInvalidInput, "torn header", "x.lks"};
      return SyntheticRun::load(i, trace);
    }
  } run(SyntheticOptions{});
  EXPECT_TRUE(has_marker(written(run), "unreadable_process"));
  fs::remove_all(path);
  run.first_good = 4;
  EXPECT_FALSE(write(run));
  SyntheticRun empty({.ranks = 0});
  EXPECT_FALSE(write(empty));
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST_F(Otf2ExporterTest, ReplacesAnArchiveAndNothingElse) {
  SyntheticRun run(SyntheticOptions{}), shorter({.ops = 2});
  ASSERT_TRUE(write(run));
  path += "//";
  EXPECT_EQ(written(shorter).collectives.size(), 8u);
  EXPECT_EQ(files_in_folder(), 1u);
  path = folder + "/photos";
  fs::create_directory(path);
  std::ofstream(path + "/holiday.jpg") << "beach";
  auto result = write(run);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  EXPECT_TRUE(fs::exists(path + "/holiday.jpg"));
  EXPECT_EQ(files_in_folder(), 2u);
  path = folder + "/absent/run.otf2";
  EXPECT_FALSE(write(run));
}

TEST_F(Otf2ExporterTest, WhatLiesBesideAnArchiveIsNotRemoved) {
  SyntheticRun run({.ops = 2});
  ASSERT_TRUE(write(run));
  for (const char* other : {"profile.cubex", "traces/holiday.jpg", "traces.def.orig"}) {
    std::ofstream(path + "/" + other) << "precious";
    auto result = write(run);
    ASSERT_FALSE(result) << other;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    EXPECT_EQ(fs::file_size(path + "/" + other), 8u);
    fs::remove(path + "/" + other);
  }
  Changed meanwhile({.ops = 2},
                    [&](size_t, Trace&) { std::ofstream(path + "/profile.cubex") << "precious"; });
  EXPECT_FALSE(write(meanwhile));
  EXPECT_EQ(fs::file_size(path + "/profile.cubex"), 8u);
  EXPECT_TRUE(fs::exists(path + "/traces.otf2"));
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(Otf2ExporterTest, FullDiskLeavesNothingBehind) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{64 * 1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  SyntheticRun run({.ops = 20'000});
  ::testing::internal::CaptureStderr();
  auto result = write(run);
  const std::string output = ::testing::internal::GetCapturedStderr();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_EQ(output, "") << "libotf2 says nothing itself";
  EXPECT_EQ(files_in_folder(), 0u);
}

TEST(Otf2Traffic, IsWhatARankHandsInAndGets) {
  struct Case {
    OTF2_CollectiveOp op;
    bool is_whole, is_root;
    uint64_t sent, received;
  };
  for (const Case& c :
       std::initializer_list<Case>{{OTF2_COLLECTIVE_OP_ALLREDUCE, false, false, 80, 80},
                                   {OTF2_COLLECTIVE_OP_ALLGATHER, false, false, 80, 640},
                                   {OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, false, false, 640, 80},
                                   {OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, true, false, 80, 10},
                                   {OTF2_COLLECTIVE_OP_ALLTOALL, false, false, 640, 640},
                                   {OTF2_COLLECTIVE_OP_ALLTOALL, true, false, 80, 80},
                                   {OTF2_COLLECTIVE_OP_BCAST, false, true, 80, 80},
                                   {OTF2_COLLECTIVE_OP_BCAST, false, false, 0, 80},
                                   {OTF2_COLLECTIVE_OP_REDUCE, false, true, 80, 80},
                                   {OTF2_COLLECTIVE_OP_REDUCE, false, false, 80, 0},
                                   {OTF2_COLLECTIVE_OP_GATHER, false, true, 80, 640},
                                   {OTF2_COLLECTIVE_OP_SCATTER, false, true, 640, 80},
                                   {OTF2_COLLECTIVE_OP_BARRIER, false, false, 0, 0}}) {
    const Traffic moved = traffic(c.op, 80, c.is_whole, 8, c.is_root);
    EXPECT_EQ(moved.sent, c.sent) << int{c.op};
    EXPECT_EQ(moved.received, c.received) << int{c.op};
  }
  EXPECT_EQ(traffic(OTF2_COLLECTIVE_OP_ALLGATHER, UINT64_MAX, false, 8, false).received, UINT64_MAX);
}

}  // namespace
}  // namespace lockstep::exporters::otf2
