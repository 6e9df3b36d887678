// SPDX-License-Identifier: Apache-2.0
// The files of simulated jobs, read back as users' tools read them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/temporary_directory.h"
#include "format/records.h"
#include "job/assemble/assembled_source.h"
#include "job/job.h"
#include "job/simulation.h"
#include "readers/reader.h"

namespace lockstep::sim::job {
namespace {

// A new name below a folder that is this process' own and goes with it.
std::string fresh_dir(const std::string& name) {
  static const TemporaryDirectory own = std::move(TemporaryDirectory::make().value());
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string dir = own.path() + "/" + info->name() + "_" + name;
  std::filesystem::remove_all(dir);
  return dir;
}

JobOptions job_of(const char* fault, format::Mode mode = format::Mode::kDeep) {
  JobOptions options;
  options.seed = 11;
  options.layout.ranks = 16;
  options.layout.tp = 2;
  options.layout.ranks_per_host = 4;
  options.steps = 6;
  options.mode = mode;
  options.fault = fault;
  return options;
}

struct ReadBack {
  Job job;
  Timeline timeline;
  std::vector<model::Trace> ranks;  // of the files that are there
  const model::Trace& of(int rank) const {
    for (const model::Trace& trace : ranks) {
      if (trace.processes.rank[0] == rank) return trace;
    }
    ADD_FAILURE() << "no rank " << rank;
    return ranks.front();
  }
};

ReadBack read_back(const JobOptions& options) {
  const std::string dir = fresh_dir("run");
  Job job = std::move(Job::make(options).value());
  EXPECT_TRUE(write_run(job, dir, 2));
  Timeline timeline =
      Simulation(job.layout, job.programs, job.fault.disturbance, {options.steps, job.deep()}, job.random)
          .run();
  ReadBack result{std::move(job), std::move(timeline), {}};
  auto source = readers::open({dir});
  EXPECT_TRUE(source) << source.error().message();
  const auto assembled = lockstep::job::assemble::assembled(std::move(*source));
  for (size_t i = 0; i < assembled->processes(); ++i) {
    auto loaded = assembled->load(i, result.ranks.emplace_back());
    EXPECT_TRUE(loaded) << loaded.error().message();
  }
  return result;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(SimulatedRun, TheSameSeedGivesTheSameBytes) {
  const std::string first = fresh_dir("first"), second = fresh_dir("second");
  const JobOptions options = job_of("stuck-in-network");
  ASSERT_TRUE(write_run(std::move(Job::make(options).value()), first, 1));
  ASSERT_TRUE(write_run(std::move(Job::make(options).value()), second, 3));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(first)) {
    EXPECT_EQ(bytes_of(entry.path()), bytes_of(second / entry.path().filename())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 17u);
  EXPECT_FALSE(write_run(std::move(Job::make(options).value()), first, 1)) << "the directory is not empty";
}

TEST(SimulatedRun, FilesAreReadWithoutLosses) {
  for (const auto mode : {format::Mode::kLite, format::Mode::kDefault, format::Mode::kDeep}) {
    JobOptions options = job_of("none", mode);
    options.marks = true;
    const ReadBack run = read_back(options);
    ASSERT_EQ(run.ranks.size(), 16u);
    for (const model::Trace& trace : run.ranks) {
      for (size_t i = 0; i < trace.losses.size(); ++i)
        ADD_FAILURE() << trace.strings[trace.losses.kind[i]] << ": " << trace.strings[trace.losses.detail[i]];
      EXPECT_EQ(trace.ops.size(), 6 * tasks_of(run.job.programs[0]));
      EXPECT_EQ(trace.marks.size(), 6u);
      EXPECT_EQ(trace.processes.closed[0], 1);
      EXPECT_EQ(trace.processes.world[0], 16);
      EXPECT_EQ(trace.channels.size() > 0, mode == format::Mode::kDeep);
    }
  }
}

TEST(SimulatedRun, TimesTooLongForTheirFieldHaveRecordsOfTheirOwn) {
  JobOptions options = job_of("none:late-joiner");
  options.steps = 12;
  for (const model::Trace& trace : read_back(options).ranks) EXPECT_EQ(trace.losses.size(), 0u);
}

TEST(SimulatedRun, ARestartLeavesTheFilesOfBothAttempts) {
  JobOptions options = job_of("none:restart", format::Mode::kDefault);
  options.steps = 12;
  const ReadBack run = read_back(options);
  ASSERT_EQ(run.ranks.size(), 32u);
  std::map<int, std::vector<const model::Trace*>> attempts;  // by rank
  for (const model::Trace& trace : run.ranks) {
    EXPECT_EQ(trace.losses.size(), 0u);
    attempts[trace.processes.rank[0]].push_back(&trace);
  }
  for (auto& [rank, two] : attempts) {
    ASSERT_EQ(two.size(), 2u);
    if (two[0]->processes.start_ns[0] > two[1]->processes.start_ns[0]) std::swap(two[0], two[1]);
    EXPECT_EQ(two[0]->processes.closed[0], 0);
    EXPECT_EQ(two[1]->processes.closed[0], 1);
    EXPECT_LT(two[0]->processes.last_ns[0], two[1]->processes.start_ns[0]);
    EXPECT_LT(two[0]->ops.size(), two[1]->ops.size());
    EXPECT_NE(two[0]->comms.comm_id[0], two[1]->comms.comm_id[0]);
  }
}

TEST(SimulatedRun, NothingIsLaterThanTheMomentWhenAllAreKilled) {
  for (const auto mode : {format::Mode::kDefault, format::Mode::kDeep}) {
    JobOptions options = job_of("none", mode);
    options.end_share = 0.5;
    const ReadBack run = read_back(options);
    const int64_t last = run.timeline.last;
    const auto killed = kFirstStepNs + static_cast<int64_t>(static_cast<double>(last - kFirstStepNs) * 0.5);
    for (int rank = 0; rank < 16; ++rank) {
      const model::Trace& trace = run.of(rank);
      EXPECT_EQ(trace.losses.size(), 0u);
      EXPECT_EQ(trace.processes.closed[0], 0);
      EXPECT_GT(trace.ops.size(), tasks_of(run.job.programs[0]));
      EXPECT_LT(trace.ops.size(), 6 * tasks_of(run.job.programs[0]));
      const int64_t local = kEpochNs + run.job.clock_of(rank).wall().at(killed) + 2'000;
      EXPECT_LE(trace.processes.last_ns[0], local);
      EXPECT_LE(trace.processes.heartbeat_ns[0], local);
      for (size_t call = 0; call < trace.calls.size(); ++call) EXPECT_LE(trace.calls.start_ns[call], local);
    }
  }
}

// Local times, taken back by the true clocks, are the simulation's times.
TEST(SimulatedRun, ClocksLeadBackToTrueTime) {
  const ReadBack run = read_back(job_of("none"));
  for (int rank = 0; rank < 16; ++rank) {
    const model::Trace& trace = run.of(rank);
    const RankTimeline& timeline = run.timeline.ranks[static_cast<size_t>(rank)];
    const LinearClock& wall = run.job.clock_of(rank).wall();
    size_t row = 0;
    for (size_t call = 0; call < trace.calls.size(); ++call) {
      if (trace.calls.kind[call] != static_cast<uint8_t>(format::Kind::kGroupApi)) continue;
      ASSERT_LT(row, timeline.units());
      ASSERT_NEAR(static_cast<double>(trace.calls.start_ns[call] - kEpochNs - wall.at(timeline.called[row])),
                  0, 2'000)
          << "rank " << rank << " unit " << row;
      ++row;
    }
    EXPECT_EQ(row, timeline.units());
    ASSERT_GT(trace.ops.size(), 0u);
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      const auto entered =
          static_cast<double>(trace.ops.gpu_start_ns[op] - kEpochNs - wall.at(timeline.entered[op]));
      ASSERT_NE(trace.ops.gpu_start_ns[op], 0);
      ASSERT_LE(std::abs(entered), trace.ops.gpu_error_ns[op] + 2'000) << "rank " << rank << " op " << op;
    }
  }
}

size_t ops_on(const model::Trace& trace, std::string_view comm) {
  size_t ops = 0;
  for (size_t op = 0; op < trace.ops.size(); ++op)
    ops += trace.strings[trace.comms.name[trace.ops.comm[op]]] == comm;
  return ops;
}

TEST(SimulatedRun, ARankThatNeverJoinsLacksTheOperation) {
  const ReadBack run = read_back(job_of("never-joined"));
  const Truth& truth = run.job.fault.truth;
  const Group& group = run.job.layout.group(truth.group);
  for (int rank : group.ranks) {
    const size_t ops = ops_on(run.of(rank), group.name);
    if (rank == truth.ranks[0]) {
      EXPECT_EQ(ops, static_cast<size_t>(truth.op_index));
    } else {
      EXPECT_GT(ops, static_cast<size_t>(truth.op_index));
    }
    EXPECT_EQ(run.of(rank).processes.closed[0], 0);
    EXPECT_GT(run.of(rank).processes.heartbeat_ns[0] - run.of(rank).processes.last_ns[0], 50'000'000'000);
  }
}

TEST(SimulatedRun, TheDeadAreSilentBeforeTheOthers) {
  const ReadBack run = read_back(job_of("rank-dead"));
  const int dead = run.job.fault.truth.ranks[0], other = (dead + 1) % 16;
  const auto& dead_row = run.of(dead).processes;
  EXPECT_EQ(dead_row.closed[0], 0);
  EXPECT_LE(dead_row.heartbeat_ns[0] - dead_row.last_ns[0], 2'000'000'000);
  EXPECT_GT(run.of(other).processes.heartbeat_ns[0] - run.of(other).processes.last_ns[0], 50'000'000'000);
}

TEST(SimulatedRun, LostFilesAreNotThere) {
  EXPECT_EQ(read_back(job_of("rank-unreachable")).ranks.size(), 12u);
  EXPECT_EQ(read_back(job_of("evidence-missing")).ranks.size(), 15u);
  EXPECT_EQ(read_back(job_of("evidence-missing:half")).ranks.size(), 8u);
  JobOptions options = job_of("evidence-missing:ring");
  options.program.ops_per_step = 200;
  uint64_t overwritten = 0;
  for (const model::Trace& trace : read_back(options).ranks) {
    for (size_t i = 0; i < trace.losses.size(); ++i)
      overwritten += trace.strings[trace.losses.kind[i]] == "overwritten" ? trace.losses.count[i] : 0;
  }
  EXPECT_GT(overwritten, 0u);
}

TEST(SimulatedRun, AnotherOperationShowsAtItsIndex) {
  for (const char* fault : {"joined-other-op", "joined-other-op:dtype", "joined-other-op:func",
                            "joined-other-op:root", "joined-other-op:order"}) {
    const ReadBack run = read_back(job_of(fault, format::Mode::kDefault));
    const Truth& truth = run.job.fault.truth;
    const Group& group = run.job.layout.group(truth.group);
    auto text = [&](int rank) {
      const model::Trace& trace = run.of(rank);
      for (size_t op = 0; op < trace.ops.size(); ++op) {
        if (trace.strings[trace.comms.name[trace.ops.comm[op]]] != group.name) continue;
        if (trace.ops.index[op] != static_cast<uint32_t>(truth.op_index)) continue;
        const model::Shape shape = trace.shapes.row(trace.ops.shape[op]);
        return std::string(trace.strings[shape.func]) + " " + std::string(trace.strings[shape.datatype]) +
               " " + std::to_string(trace.ops.count[op]) + " root " + std::to_string(shape.root);
      }
      return std::string("nothing");
    };
    std::map<std::string, int> texts;
    for (int rank : group.ranks) ++texts[text(rank)];
    EXPECT_EQ(texts.size(), 2u) << fault;
    EXPECT_EQ(texts[text(truth.ranks[0])], 1) << fault;
  }
}

TEST(SimulatedRun, StuckOperationsAreOpenOnEveryRank) {
  for (const char* fault : {"stuck-in-gpu", "stuck-in-network", "stuck-in-network:peer"}) {
    const ReadBack run = read_back(job_of(fault));
    const Truth& truth = run.job.fault.truth;
    for (int rank : run.job.layout.group(truth.group).ranks) {
      const model::Trace& trace = run.of(rank);
      const auto stops = trace.channels.all(&model::ChannelTable::gpu_stop);
      const auto open = std::count(stops.begin(), stops.end(), 0u);
      EXPECT_GT(open, 0) << fault << " rank " << rank;
    }
    const auto ends =
        run.of(truth.ranks.empty() ? 0 : truth.ranks[0]).proxy_steps.all(&model::ProxyStepTable::end_ns);
    if (truth.ranks.empty()) continue;
    EXPECT_GT(std::count(ends.begin(), ends.end(), 0), 0) << fault;
  }
}

TEST(SimulatedRun, ACommunicatorThatIsNotFinishedLacksMembers) {
  const ReadBack run = read_back(job_of("init-stuck"));
  const NewGroup& late = run.job.fault.disturbance.new_group;
  size_t present = 0;
  for (const model::Trace& trace : run.ranks) {
    const auto ids = trace.comms.all(&model::CommTable::comm_id);
    present += static_cast<size_t>(std::count(ids.begin(), ids.end(), late.group.comm_id));
  }
  EXPECT_EQ(present, 16 - late.absent.size());
}

// Median time of the transfers that each rank sends, once accepted.
TEST(SimulatedRun, ASlowLinkShowsInItsSteps) {
  for (const char* fault : {"slow-link", "slow-nic", "fallback"}) {
    const ReadBack run = read_back(job_of(fault));
    const Truth& truth = run.job.fault.truth;
    std::vector<std::pair<int64_t, int>> medians;
    for (const model::Trace& trace : run.ranks) {
      std::vector<int64_t> wire;
      for (size_t i = 0; i < trace.proxy_steps.size(); ++i) {
        if (trace.proxy_steps.is_send[i])
          wire.push_back(trace.proxy_steps.end_ns[i] - trace.proxy_steps.wait3_ns[i]);
      }
      if (wire.empty()) continue;
      std::nth_element(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(wire.size() / 2), wire.end());
      medians.emplace_back(wire[wire.size() / 2], trace.processes.rank[0]);
    }
    ASSERT_GT(medians.size(), 3u);
    const int slowest = std::max_element(medians.begin(), medians.end())->second;
    const Group& group = run.job.layout.group(run.job.layout.group_of(slowest, Dim::kData));
    const int to = group.ranks[static_cast<size_t>(
        run.job.layout.network_peer(group, run.job.layout.rank_in(slowest, Dim::kData), true))];
    const bool blamed = std::count(truth.ranks.begin(), truth.ranks.end(), slowest) +
                            std::count(truth.ranks.begin(), truth.ranks.end(), to) >
                        0;
    EXPECT_TRUE(blamed) << fault << " slowest sender " << slowest;
  }
}

}  // namespace
}  // namespace lockstep::sim::job
