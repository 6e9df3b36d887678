// SPDX-License-Identifier: Apache-2.0
#include "model/names/operation_size.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(OperationSize, IsThatOfNcclTests) {
  EXPECT_EQ(operation_size("AllReduce", 100, 8, false), 100u);
  EXPECT_EQ(operation_size("AllGather", 100, 8, false), 800u);
  EXPECT_EQ(operation_size("ReduceScatter", 100, 8, false), 800u);
  EXPECT_EQ(operation_size("AlltoAll", 100, 8, false), 800u);
  EXPECT_EQ(operation_size("Broadcast", 100, 8, false), 100u);
  EXPECT_EQ(operation_size("Send", 100, 8, false), 100u);
  EXPECT_EQ(operation_size("AllGather", 100, -1, false), 100u);
  EXPECT_EQ(operation_size("AllGather", UINT64_MAX / 2, 8, false), UINT64_MAX);
  // A declared operation names its input: already the whole for reduce-scatter.
  EXPECT_EQ(operation_size("reduce_scatter", 800, 8, true), 800u);
  EXPECT_EQ(operation_size("all_gather", 100, 8, true), 800u);
  EXPECT_EQ(operation_size("_allgather_base", 100, 8, true), 800u);
  EXPECT_EQ(operation_size("_reduce_scatter_base", 800, 8, true), 800u);
}

TEST(OperationSize, BusFactors) {
  EXPECT_DOUBLE_EQ(bus_factor("AllReduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor("ReduceScatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("Broadcast", 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor("AllReduce", 1), 1);
  EXPECT_DOUBLE_EQ(bus_factor("AllReduce", -1), 1);
}

TEST(OperationSize, KnowsWhatHasARoot) {
  EXPECT_TRUE(has_root("Broadcast"));
  EXPECT_TRUE(has_root("reduce"));
  EXPECT_FALSE(has_root("AllReduce"));
  EXPECT_FALSE(has_root("_allgather_base"));
}

}  // namespace
}  // namespace lockstep::model
