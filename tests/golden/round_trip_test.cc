// SPDX-License-Identifier: Apache-2.0
// A JSON timeline of one rank is a trace as PyTorch's profiler writes it, so the reader of those has to find
// in it the operations that it was made from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <tuple>
#include <vector>

#include "exporters/exporter.h"
#include "model/testing/synthetic_run.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

namespace fs = std::filesystem;
using model::Trace;
using model::testing::SyntheticOptions;
using model::testing::SyntheticRun;

struct OnlyRank : SyntheticRun {
  explicit OnlyRank(SyntheticOptions options) : SyntheticRun(std::move(options)) {}
  size_t processes() const override { return 1; }
  Result<void> load(size_t, Trace& trace) override { return SyntheticRun::load(2, trace); }
};

// func, datatype, count, bytes, peer, root, group's size, own place in it, called (where that is not known:
// enqueued, which is when the timeline draws it), GPU start and end.
using Operation = std::tuple<std::string, std::string, uint64_t, uint64_t, int32_t, int32_t, int32_t, int32_t,
                             int64_t, int64_t, int64_t>;

std::multiset<Operation> operations_of(const Trace& trace) {
  std::multiset<Operation> all;
  for (uint32_t op = 0; op < trace.ops.size(); ++op) {
    const model::Shape shape = trace.shapes.row(trace.ops.shape[op]);
    const model::Comm comm = trace.comms.row(trace.ops.comm[op]);
    const int64_t end = trace.ops.gpu_end_ns[op];
    all.emplace(trace.strings[shape.func], trace.strings[shape.datatype], trace.ops.count[op],
                trace.ops.bytes[op], trace.ops.peer[op], shape.root, comm.ranks, comm.rank,
                trace.ops.called_ns[op] != 0 ? trace.ops.called_ns[op] : trace.ops.enqueued_ns[op],
                end == 0 ? 0 : trace.ops.gpu_start_ns[op], end);
  }
  return all;
}

// Those that only one of the two has, as text.
std::string difference(const Trace& a, const Trace& b) {
  const std::multiset<Operation> ours = operations_of(a), theirs = operations_of(b);
  std::vector<Operation> apart;
  std::set_symmetric_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                std::back_inserter(apart));
  return apart.empty() ? "" : ::testing::PrintToString(apart);
}

class RoundTrip : public ::testing::Test {
 protected:
  static Trace load(model::TraceSource& source) {
    Trace trace;
    EXPECT_TRUE(source.load(0, trace));
    return trace;
  }
  Result<std::unique_ptr<model::TraceSource>> read_timeline(model::TraceSource& source,
                                                            const std::string& name) {
    const std::string path = folder_ / name;
    LOCKSTEP_TRY(exporters::find("chrome")->write(source, path, nullptr));
    return readers::open({path});
  }
  const test::TemporaryFolder folder_;
};

TEST_F(RoundTrip, OperationsOfAMadeUpRank) {
  for (const char* name : {"rank2.json", "rank2.json.gz"}) {
    OnlyRank run(SyntheticOptions{.ops = 50});
    const Trace before = load(run);
    auto source = read_timeline(run, name);
    ASSERT_TRUE(source) << source.error().message();
    ASSERT_EQ((*source)->processes(), 1u);
    const Trace after = load(**source);
    EXPECT_EQ(after.processes.rank[0], 2);
    EXPECT_EQ(after.processes.world[0], 4);
    EXPECT_EQ(after.ops.size(), before.ops.size());
    EXPECT_EQ(difference(after, before), "");
    ASSERT_EQ(after.losses.size(), 1u) << "of its counters nothing is said";
    EXPECT_EQ(after.strings[after.losses.kind[0]], "call_without_kernel") << "sends and receives";
    size_t steps = 0, kernels = 0;
    for (const uint8_t is_step : before.marks.all(&model::MarkTable::is_step)) steps += is_step;
    for (const uint32_t op : before.kernels.all(&model::KernelTable::op)) kernels += op >= before.ops.size();
    EXPECT_EQ(after.marks.size(), steps);
    for (const uint8_t kind : after.kernels.all(&model::KernelTable::kind))
      kernels -= kind != static_cast<uint8_t>(model::KernelKind::kCommunication);
    EXPECT_EQ(kernels, 0u) << "kernels and copies of no operation";
  }
}

TEST_F(RoundTrip, OperationsOfARecordedProfilerTrace) {
  auto recorded = readers::open({LOCKSTEP_SOURCE_DIR "/tests/data/kineto/rank0.json.gz"});
  ASSERT_TRUE(recorded);
  const Trace before = load(**recorded);
  auto source = read_timeline(**recorded, "rank0.json");
  ASSERT_TRUE(source) << source.error().message();
  const Trace after = load(**source);
  EXPECT_EQ(difference(after, before), "");
  std::set<std::pair<std::string, uint64_t>> comms_before, comms_after;
  for (const auto& [trace, comms] : {std::pair{&before, &comms_before}, {&after, &comms_after}}) {
    for (uint32_t i = 0; i < trace->comms.size(); ++i)
      comms->emplace(trace->strings[trace->comms.name[i]], trace->comms.comm_id[i]);
  }
  EXPECT_EQ(comms_after, comms_before);
}

TEST_F(RoundTrip, ATimelineOfSeveralRanksIsToLookAt) {
  for (const uint32_t ops : {2u, 300u}) {  // short, and with more tracks than the first bytes show
    SyntheticRun run({.ranks = 4, .ops = ops});
    auto source = read_timeline(run, "timeline.json");
    ASSERT_FALSE(source);
    EXPECT_NE(source.error().message().find("a timeline made by lockstep"), std::string::npos)
        << source.error().message();
  }
}

TEST_F(RoundTrip, ATimelineBesideItsRunIsNoEvidence) {
  OnlyRank run(SyntheticOptions{});
  ASSERT_TRUE(read_timeline(run, "rank2.json"));
  auto source = readers::open({folder_.path()});
  EXPECT_FALSE(source) << "a directory of timelines alone holds nothing to read";
}

}  // namespace
}  // namespace lockstep::golden
