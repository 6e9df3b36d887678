// SPDX-License-Identifier: Apache-2.0
#include "analysis/operation_name.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis {
namespace {

using testing::JobBuilder;

// Of rank 0's n-th operation.
std::string text(const model::Job& job, uint32_t op) { return operation_name(job, 0, op).text(); }

TEST(OperationName, CountsOnTheCommunicatorAndByFunction) {
  JobBuilder builder(2);
  const uint32_t world = builder.world("mesh_dp:1");
  for (uint32_t rank : {0u, 1u}) {
    builder.call(rank, world, {.func = "Broadcast", .called_ms = 1});
    builder.call(rank, world, {.func = "AllReduce", .called_ms = 2});
    builder.call(rank, world, {.func = "AllReduce", .called_ms = 3});
  }
  const model::Job job = builder.build();
  EXPECT_EQ(text(job, 0), "operation 0 of mesh_dp:1 (its 1st Broadcast)");
  EXPECT_EQ(text(job, 2), "operation 2 of mesh_dp:1 (its 2nd AllReduce)");
  Finding finding(FindingId{});
  name_operation(job, 1, 2, finding);
  EXPECT_EQ(finding.operation, "operation 2 of mesh_dp:1 (its 2nd AllReduce)");
  EXPECT_EQ(finding.op_address, "2");
  EXPECT_EQ(finding.comm, "mesh_dp:1");
  EXPECT_EQ(finding.op_index, 2u);
}

TEST(OperationName, SaysNoOrdinalThatItCannotKnow) {
  JobBuilder builder(2);
  const uint32_t world = builder.world("dp");
  for (uint32_t rank : {0u, 1u}) builder.call(rank, world, {.called_ms = 1});
  model::Job job = builder.build();
  for (model::Member& member : job.members) member.alignment = model::Member::Alignment::kNone;
  job.processes[0].ops.seq[0] = model::kNoIndex;
  EXPECT_EQ(text(job, 0), "operation 0 of dp (AllReduce)");
  job.processes[0].ops.seq[0] = 41;
  EXPECT_EQ(text(job, 0), "operation 0 of dp (its 42nd AllReduce)");
  job.processes[0].graphs = true;
  EXPECT_EQ(text(job, 0), "operation 0 of dp (AllReduce)") << "replays repeat NCCL's number";
}

TEST(OperationName, NamesTransfersByTheirPair) {
  JobBuilder builder(3);
  const uint32_t pp = builder.comm("pp", {1, 2});
  for (int i = 0; i < 3; ++i) {
    builder.call(1, pp, {.func = "Send", .called_ms = 1.0 + i, .peer = 1});
    builder.call(2, pp, {.func = "Recv", .called_ms = 1.0 + i, .peer = 0});
  }
  const model::Job job = builder.build();
  for (const uint32_t process : {1u, 2u}) {
    Finding finding(FindingId{});
    name_operation(job, process, 2, finding);
    EXPECT_EQ(finding.operation, std::string("transfer 2 from rank 1 to rank 2 on pp (") +
                                     (process == 1 ? "Send" : "Recv") + ")");
    EXPECT_EQ(finding.op_address, "p2p:0-1:2");
  }
}

TEST(OperationName, SaysHowLargeACommunicatorWithoutANameIs) {
  JobBuilder builder(4);
  const uint32_t all = builder.world(""), half = builder.comm("", {0, 1});
  builder.call(0, all, {.called_ms = 1});
  builder.call(0, half, {.called_ms = 1});
  const model::Job job = builder.build();
  EXPECT_EQ(comm_text(job, all), "world " + job.comm_name(all));
  EXPECT_EQ(comm_text(job, half), job.comm_name(half) + " of 2 ranks");
}

}  // namespace
}  // namespace lockstep::analysis
