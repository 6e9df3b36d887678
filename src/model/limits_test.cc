// SPDX-License-Identifier: Apache-2.0
#include "model/limits.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::model {
namespace {

Process process_of(int32_t rank, int32_t world) {
  Process row{};
  row.rank = row.local_rank = row.node_rank = rank;
  row.world = world;
  return row;
}

Comm comm_of(int32_t rank, int32_t ranks) {
  Comm row{};
  row.rank = rank;
  row.ranks = row.nodes = ranks;
  return row;
}

TEST(Limits, WhatAJobMayHaveStays) {
  Trace trace;
  trace.processes.append(process_of(-1, -1));
  trace.processes.append(process_of(kMostRanks - 1, kMostRanks));
  trace.comms.append(comm_of(0, 2));
  trace.comms.append(comm_of(kMostRanks - 1, kMostRanks));
  trace.shapes.append({.root = kMostRanks - 1});
  EXPECT_EQ(drop_impossible(trace), 0u);
  EXPECT_EQ(trace.processes.world[1], kMostRanks);
  EXPECT_EQ(trace.comms.ranks[1], kMostRanks);
  EXPECT_EQ(trace.shapes.root[0], kMostRanks - 1);
}

TEST(Limits, WhatNoJobHasIsUnknownAndCounted) {
  constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();
  Trace trace;
  trace.processes.append(process_of(kMostRanks, kMostRanks + 1));  // 4
  trace.comms.append(comm_of(kLargest, kLargest));                 // 3
  trace.comms.append(comm_of(-2, -2));                             // 3
  trace.shapes.append({.root = kMostRanks});                       // 1
  EXPECT_EQ(drop_impossible(trace), 11u);
  EXPECT_EQ(trace.processes.rank[0], -1);
  EXPECT_EQ(trace.processes.world[0], -1);
  for (uint32_t row : {0u, 1u}) {
    EXPECT_EQ(trace.comms.rank[row], -1);
    EXPECT_EQ(trace.comms.ranks[row], -1);
    EXPECT_EQ(trace.comms.nodes[row], -1);
  }
  EXPECT_EQ(trace.shapes.root[0], 0);
}

}  // namespace
}  // namespace lockstep::model
