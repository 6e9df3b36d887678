// SPDX-License-Identifier: Apache-2.0
// PyTorch's Comms Id of recorded jobs, from three sources that have to agree: NCCL's callbacks with the
// communicators' names as PyTorch writes them from 2026 on, dumps of the Flight Recorder, and the real
// std::hash.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "golden/tape_run.h"
#include "model/testing/std_comms_id.h"
#include "model/torch/torch_groups.h"
#include "readers/reader.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

using model::Trace;

using model::testing::std_comms_id;

// A recorded job whose communicators get names before anything is numbered.
std::vector<Trace> named(const std::string& folder,
                         const std::function<std::string(int32_t rank, int32_t ranks)>& name) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 8; ++rank)
    paths.push_back(LOCKSTEP_SOURCE_DIR "/" + folder + "/rank" + std::to_string(rank) + ".jsonl.gz");
  auto run = TapeRun::open(paths, false);
  EXPECT_TRUE(run);
  std::vector<Trace> traces((*run)->processes());
  model::RunMembers members;
  for (size_t i = 0; i < traces.size(); ++i) {
    EXPECT_TRUE((*run)->load(i, traces[i]));
    model::CommTable& comms = traces[i].comms;
    const int32_t rank = traces[i].processes.rank[0];
    for (uint32_t comm = 0; comm < comms.size(); ++comm) {
      comms.name[comm] = traces[i].strings.intern(name(rank, comms.ranks[comm]));
      members.add(comms.comm_id[comm], comms.ranks[comm], comms.rank[comm], rank);
    }
  }
  members.finish();
  for (Trace& trace : traces) {
    model::name_torch_groups(trace, members);
    model::number_torch_operations(trace);
  }
  return traces;
}

// World, pairs of tensor parallelism, and the even and the odd ranks of data parallelism.
std::string train_name(int32_t rank, int32_t ranks) {
  if (ranks == 8) return "default_pg:0";
  if (ranks == 2) return "mesh_tp:" + std::to_string(1 + rank / 2);
  return "mesh_dp:" + std::to_string(5 + rank % 2);
}

TEST(RecordedCommsIds, EveryOperationOfTheTrainingJobHasTheOneOfItsGroup) {
  const std::vector<Trace> traces = named("examples/recordings/train2h", train_name);
  size_t ops = 0, with_id = 0, sends = 0;
  for (const Trace& trace : traces) {
    const int32_t rank = trace.processes.rank[0];
    for (uint32_t op = 0; op < trace.ops.size(); ++op) {
      ++ops;
      const uint64_t id = trace.ops.torch_comms_id[op];
      with_id += id != 0;
      const int64_t seq = trace.ops.torch_seq[op];
      const bool is_p2p = trace.ops.peer[op] >= 0;
      sends += is_p2p;
      switch (trace.comms.ranks[trace.ops.comm[op]]) {
        case 8:
          EXPECT_EQ(id, std_comms_id("0", seq, is_p2p, 0, 1, 8));
          break;
        case 2:
          EXPECT_EQ(id, std_comms_id(std::to_string(1 + rank / 2), seq, is_p2p, rank / 2 * 2, 1, 2));
          break;
        default:
          EXPECT_EQ(id, std_comms_id(std::to_string(5 + rank % 2), seq, is_p2p, rank % 2, 2, 4));
      }
      // Nothing is coalesced in this job: PyTorch counts what NCCL is asked for.
      EXPECT_EQ(seq, int64_t{trace.ops.index[op]} + 1);
    }
  }
  EXPECT_EQ(ops, 712u);
  EXPECT_GT(sends, 0u);
  EXPECT_EQ(with_id, ops);
}

TEST(RecordedCommsIds, WithoutOneRanksFileItsGroupsHaveNoneButTheWholeJobs) {
  std::vector<Trace> traces = named("examples/recordings/train2h", train_name);
  model::RunMembers members;  // nobody's
  Trace& trace = traces[3];
  for (uint32_t comm = 0; comm < trace.comms.size(); ++comm) trace.comms.group_name[comm] = 0;
  for (uint32_t op = 0; op < trace.ops.size(); ++op)
    trace.ops.torch_comms_id[op] = trace.ops.torch_seq[op] = 0;
  members.finish();
  model::name_torch_groups(trace, members);
  model::number_torch_operations(trace);
  for (uint32_t op = 0; op < trace.ops.size(); ++op)
    EXPECT_EQ(trace.ops.torch_comms_id[op] != 0, trace.comms.ranks[trace.ops.comm[op]] == 8);
}

using Ids = std::multiset<std::pair<int64_t, uint64_t>>;
Ids ids_of(const Trace& trace) {
  Ids ids;
  for (uint32_t op = 0; op < trace.ops.size(); ++op)
    ids.emplace(trace.ops.torch_seq[op], trace.ops.torch_comms_id[op]);
  return ids;
}

// Two programs wrote these of one job, each counting for itself.
TEST(RecordedCommsIds, OfTheHangAreThoseOfItsFlightRecorder) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 8; ++rank)
    paths.push_back(LOCKSTEP_SOURCE_DIR "/tests/data/flight_recorder/hang/fr_" + std::to_string(rank));
  auto dumps = readers::open(paths);
  ASSERT_TRUE(dumps);
  std::map<int32_t, Ids> recorded;
  std::map<int32_t, std::string> names;  // by size
  size_t entries = 0;
  for (size_t i = 0; i < (*dumps)->processes(); ++i) {
    Trace trace;
    ASSERT_TRUE((*dumps)->load(i, trace));
    for (uint32_t comm = 0; comm < trace.comms.size(); ++comm)
      names[trace.comms.ranks[comm]] = std::string(trace.strings[trace.comms.group_description[comm]]) + ":" +
                                       std::string(trace.strings[trace.comms.group_name[comm]]);
    recorded[trace.processes.rank[0]] = ids_of(trace);
    for (uint32_t op = 0; op < trace.ops.size(); ++op) EXPECT_NE(trace.ops.torch_comms_id[op], 0u);
    entries += trace.ops.size();
  }
  EXPECT_EQ(entries, 75u);
  for (const Trace& trace :
       named("tests/data/runs/hang", [&](int32_t, int32_t ranks) { return names[ranks]; }))
    EXPECT_EQ(ids_of(trace), recorded[trace.processes.rank[0]]) << trace.processes.rank[0];
}

}  // namespace
}  // namespace lockstep::golden
