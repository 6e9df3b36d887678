// SPDX-License-Identifier: Apache-2.0
// Eight H200s whose profiler and whose NCCL plugin recorded the same two steps at the same time
// (data-parallel x tensor-parallel pairs). What PyTorch says of an operation has to agree with what NCCL says
// of it.
//
// LOCKSTEP_KINETO_RECORDING=FOLDER compares another recording: traces (*.json) and tapes (tape_*.jsonl) of
// one job.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/overlap/overlap.h"
#include "golden/tape_run.h"
#include "job/gather/gather.h"
#include "job/match/match.h"
#include "nccl_host/tape.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

namespace fs = std::filesystem;
using model::Trace;

constexpr int64_t kUs = 1'000;

std::string unpacked(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  char buffer[1 << 16];
  for (int read; file != nullptr && (read = gzread(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(read));
  gzclose(file);
  return text;
}

// The traces as files of their own, the tapes as they are; both by rank.
class Recording {
 public:
  Recording() {
    const char* const other = std::getenv("LOCKSTEP_KINETO_RECORDING");
    const fs::path source = other != nullptr ? other : LOCKSTEP_SOURCE_DIR "/tests/data/kineto";
    for (const auto& entry : fs::directory_iterator(source)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("tape_")) {
        tapes_.push_back(entry.path());
      } else if (name.find(".json") != std::string::npos) {
        traces_.push_back(folder_ / name.substr(0, name.find(".json") + 5));
        std::ofstream(traces_.back(), std::ios::binary) << unpacked(entry.path());
      }
    }
    std::sort(traces_.begin(), traces_.end());
    std::sort(tapes_.begin(), tapes_.end());
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::vector<std::string>& traces() const { return traces_; }
  const std::vector<std::string>& tapes() const { return tapes_; }

 private:
  const test::TemporaryFolder folder_;
  std::vector<std::string> traces_, tapes_;
};

// The rank of a tape: that in its largest communicator.
int32_t rank_of(const Trace& trace) {
  int32_t rank = -1, most = 0;
  for (size_t i = 0; i < trace.comms.size(); ++i) {
    if (trace.comms.ranks[i] > most) {
      most = trace.comms.ranks[i];
      rank = trace.comms.rank[i];
    }
  }
  return rank;
}

// What NCCL's plugin saw, by rank, in the time of CLOCK_REALTIME.
std::map<int32_t, Trace> plugin_traces(const std::vector<std::string>& tapes) {
  std::map<int32_t, Trace> out;
  auto run = TapeRun::open(tapes, true);
  EXPECT_TRUE(run) << run.error().message();
  if (!run) return out;
  for (size_t i = 0; i < (*run)->processes(); ++i) {
    Trace trace;
    EXPECT_TRUE((*run)->load(i, trace));
    auto program = sim::read_tape(tapes[i]);
    const int64_t shift = program->recorded_realtime_ns +
                          static_cast<int64_t>(program->calls.front().when_ns) - trace.processes.first_ns[0];
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      for (auto* column :
           {&trace.ops.called_ns, &trace.ops.enqueued_ns, &trace.ops.gpu_start_ns, &trace.ops.gpu_end_ns})
        (*column)[op] += (*column)[op] == 0 ? 0 : shift;
    }
    const int32_t rank = rank_of(trace);
    out.emplace(rank, std::move(trace));
  }
  return out;
}

std::string_view func(const Trace& trace, size_t op) {
  return trace.strings[trace.shapes.func[trace.ops.shape[op]]];
}

bool same_operation(const Trace& kineto, size_t a, const Trace& plugin, size_t b) {
  std::string_view name = func(kineto, a);
  if (name == "Barrier") name = "AllReduce";
  return name == func(plugin, b) && kineto.ops.bytes[a] == plugin.ops.bytes[b] &&
         kineto.ops.peer[a] == plugin.ops.peer[b] &&
         kineto.comms.ranks[kineto.ops.comm[a]] == plugin.comms.ranks[plugin.ops.comm[b]] &&
         kineto.comms.rank[kineto.ops.comm[a]] == plugin.comms.rank[plugin.ops.comm[b]];
}

TEST(KinetoRecording, AgreesWithWhatNcclsPluginSaw) {
  const Recording recording;
  const std::map<int32_t, Trace> plugin = plugin_traces(recording.tapes());
  auto source = readers::open(recording.traces());
  ASSERT_TRUE(source) << source.error().message();
  uint64_t ops = 0, joined = 0, timed = 0, near = 0;
  int64_t worst_begin = 0;
  std::map<std::pair<std::string, int32_t>, std::map<uint64_t, uint64_t>> comm_ids;  // votes
  for (size_t p = 0; p < (*source)->processes(); ++p) {
    Trace kineto;
    ASSERT_TRUE((*source)->load(p, kineto));
    const auto of_rank = plugin.find(kineto.processes.rank[0]);
    ASSERT_NE(of_rank, plugin.end()) << "rank " << kineto.processes.rank[0];
    const Trace& other = of_rank->second;
    for (size_t op = 0; op < kineto.ops.size(); ++op) {
      ++ops;
      const int64_t begin = kineto.ops.called_ns[op], end = kineto.calls.end_ns[kineto.ops.call[op]];
      std::vector<size_t> inside;
      for (size_t i = 0; i < other.ops.size(); ++i) {
        const int64_t called =
            other.ops.called_ns[i] != 0 ? other.ops.called_ns[i] : other.ops.enqueued_ns[i];
        if (called >= begin && called <= end && same_operation(kineto, op, other, i)) inside.push_back(i);
      }
      if (inside.size() != 1) continue;
      ++joined;
      const size_t i = inside[0];
      ++comm_ids[{std::string(kineto.strings[kineto.comms.members[kineto.ops.comm[op]]]), 0}]
                [other.comms.comm_id[other.ops.comm[i]]];
      if (kineto.ops.gpu_start_ns[op] == 0 || other.ops.gpu_start_ns[i] == 0 || other.ops.gpu_end_ns[i] == 0)
        continue;
      ++timed;
      const int64_t here = kineto.ops.gpu_end_ns[op] - kineto.ops.gpu_start_ns[op];
      const int64_t there = other.ops.gpu_end_ns[i] - other.ops.gpu_start_ns[i];
      // A channel's work lies within its kernel, which spends some time before and behind it.
      near += std::abs(here - there) <= std::max<int64_t>(5 * kUs, here / 50);
      // It is over both uncertainties that neither contains the other.
      const int64_t error = int64_t{kineto.ops.gpu_error_ns[op]} + other.ops.gpu_error_ns[i];
      EXPECT_LE(kineto.ops.gpu_start_ns[op] - other.ops.gpu_start_ns[i], error);
      EXPECT_LE(other.ops.gpu_end_ns[i] - kineto.ops.gpu_end_ns[op], error);
      worst_begin = std::max(worst_begin, std::abs(kineto.ops.gpu_start_ns[op] - other.ops.gpu_start_ns[i]));
    }
  }
  RecordProperty("operations", std::to_string(ops));
  RecordProperty("joined", std::to_string(joined));
  std::printf(
      "%llu operations, %llu joined, %llu timed by both, %llu durations alike, begins within %.1f us\n",
      static_cast<unsigned long long>(ops), static_cast<unsigned long long>(joined),
      static_cast<unsigned long long>(timed), static_cast<unsigned long long>(near),
      static_cast<double>(worst_begin) / 1e3);
  EXPECT_GE(ops, 100u);
  EXPECT_GE(static_cast<double>(joined), 0.99 * static_cast<double>(ops));
  EXPECT_GE(static_cast<double>(timed), 0.99 * static_cast<double>(joined));
  EXPECT_GE(static_cast<double>(near), 0.99 * static_cast<double>(timed));
  for (const auto& [group, ids] : comm_ids) EXPECT_EQ(ids.size(), 1u) << "members " << group.first;
}

TEST(KinetoRecording, MatchesAllRanksAndAlignsTheirClocks) {
  const Recording recording;
  auto source = readers::open(recording.traces());
  ASSERT_TRUE(source);
  auto job = job::gather::gather(**source, {});
  ASSERT_TRUE(job);
  const analysis::Diagnosis diagnosis = analysis::diagnose(*job);
  uint64_t matched = 0, unmatched = 0;
  for (const job::match::CommMatch& match : job::match::count_matches(*job)) {
    matched += match.matched;
    for (const uint64_t count : match.unmatched) unmatched += count;
  }
  EXPECT_EQ(matched, 112u);
  EXPECT_EQ(unmatched, 0u);
  EXPECT_TRUE(job::match::differences(*job).empty());
  EXPECT_EQ(job->losses.size(), 0u);
  // The traces name no host, so each has a clock of its own; in truth it was one.
  EXPECT_EQ(job->hosts.size(), 8u);
  for (uint32_t process = 0; process < job->processes.size(); ++process) {
    const auto offset =
        job->hosts[job->processes[process].host].clock.offset(job->processes[process].row.last_ns);
    ASSERT_TRUE(offset);
    EXPECT_LE(std::abs(offset->ns), offset->half_width_ns) << process;
    EXPECT_LT(offset->half_width_ns, 1'000 * kUs);
  }
  // Rank 4 came last in the first step, as its little exposed communication shows.
  for (const analysis::Finding& finding : diagnosis.findings) {
    EXPECT_EQ(id_text(finding.id), "imbalance.once") << finding.statement;
    EXPECT_EQ(finding.ranks, std::vector<int32_t>{4});
  }
}

// Every ns of every step looked at for itself.
TEST(KinetoRecording, ExposedCommunicationIsWhatABruteForceFinds) {
  const Recording recording;
  auto source = readers::open(recording.traces());
  ASSERT_TRUE(source);
  auto job = job::gather::gather(**source, {});
  ASSERT_TRUE(job);
  for (size_t p = 0; p < (*source)->processes(); ++p) {
    Trace trace;
    ASSERT_TRUE((*source)->load(p, trace));
    const std::vector<model::GpuStep>& steps = job->processes[p].gpu_steps;
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].number, 3);
    EXPECT_EQ(steps[1].number, 4);
    for (const model::GpuStep& step : steps) {
      std::vector<uint8_t> runs(static_cast<size_t>(step.length_ns()));
      for (size_t i = 0; i < trace.kernels.size(); ++i) {
        const int64_t from = std::max(trace.kernels.start_ns[i], step.begin_ns);
        const int64_t to = std::min(trace.kernels.end_ns[i], step.end_ns);
        for (int64_t ns = from; ns < to; ++ns)
          runs[static_cast<size_t>(ns - step.begin_ns)] |= static_cast<uint8_t>(1u << trace.kernels.kind[i]);
      }
      int64_t computing = 0, communicating = 0, exposed = 0;
      for (const uint8_t kinds : runs) {
        computing += kinds & 1;
        communicating += kinds >> 1 & 1;
        exposed += (kinds & 3) == 2;
      }
      EXPECT_EQ(step.computing_ns, computing);
      EXPECT_EQ(step.communicating_ns, communicating);
      EXPECT_EQ(step.exposed_ns, exposed);
      EXPECT_GT(exposed, 0);
    }
  }
  EXPECT_EQ(analysis::overlap::measure(*job).size(), 8u);
}

}  // namespace
}  // namespace lockstep::golden
