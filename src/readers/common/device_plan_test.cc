// SPDX-License-Identifier: Apache-2.0
#include "readers/common/device_plan.h"

#include <gtest/gtest.h>

namespace lockstep::readers::common {
namespace {

PlannedDevice device(int32_t host, int32_t ordinal) {
  const std::string name = "node-" + std::to_string(host);
  return {.key = name + " gpu " + std::to_string(ordinal), .host = name, .ordinal = ordinal};
}

int32_t number(DevicePlan& plan, int32_t host, int32_t ordinal) {
  return plan.number(device(host, ordinal).key);
}

TEST(DevicePlan, CountsByHostAndGpu) {
  DevicePlan plan;
  for (int32_t host : {1, 0}) {
    for (int32_t gpu : {3, 2, 1, 0}) plan.add(device(host, gpu));
  }
  plan.finish();
  EXPECT_EQ(number(plan, 0, 0), 0);
  EXPECT_EQ(number(plan, 0, 3), 3);
  EXPECT_EQ(number(plan, 1, 0), 8);
  EXPECT_EQ(number(plan, 1, 3), 11);
}

TEST(DevicePlan, StaysWhateverFileIsMissing) {
  for (int32_t missing = 0; missing < 8; ++missing) {
    DevicePlan plan;
    for (int32_t gpu = 0; gpu < 8; ++gpu) {
      if (gpu != missing) plan.add(device(0, gpu));
    }
    plan.finish();
    for (int32_t gpu = 0; gpu < 8; ++gpu) {
      if (gpu != missing) {
        EXPECT_EQ(number(plan, 0, gpu), gpu) << missing;
      }
    }
  }
  DevicePlan alone;
  PlannedDevice of_node = device(6, 3);
  of_node.node_rank = 6;
  alone.add(of_node);
  alone.finish();
  EXPECT_EQ(alone.number(of_node.key), 51) << "GPU 3 of node 6";
}

TEST(DevicePlan, TakesLocalRanksWhereEachRankSeesItsGpuAsZero) {
  DevicePlan plan;
  for (int32_t rank : {2, 0, 1}) {
    plan.add({.key = "gpu " + std::to_string(rank), .host = "a", .local_rank = rank, .ordinal = 0});
  }
  plan.finish();
  for (int32_t rank : {0, 1, 2}) EXPECT_EQ(plan.number("gpu " + std::to_string(rank)), rank);
}

TEST(DevicePlan, ElseCountsByPciAddress) {
  DevicePlan plan;
  for (const char* pci : {"0000:3b:00.0", "0000:1b:00.0", "0000:2b:00.0"})
    plan.add({.key = pci, .host = "a", .ordinal = 0, .pci = pci});
  plan.add({.key = "unknown", .host = "a"});
  plan.finish();
  EXPECT_EQ(plan.number("0000:1b:00.0"), 0);
  EXPECT_EQ(plan.number("0000:2b:00.0"), 1);
  EXPECT_EQ(plan.number("0000:3b:00.0"), 2);
  EXPECT_EQ(plan.number("unknown"), 3);
}

TEST(DevicePlan, GivesRoomToHostsOfManyGpus) {
  DevicePlan plan;
  for (int32_t gpu = 0; gpu < 16; ++gpu) plan.add(device(0, gpu));
  plan.add(device(1, 0));
  plan.finish();
  EXPECT_EQ(number(plan, 0, 15), 15);
  EXPECT_EQ(number(plan, 1, 0), 16);
}

TEST(DevicePlan, PutsLaunchersAndUnplannedOnesBehindAll) {
  DevicePlan plan;
  plan.add({.key = "launcher", .host = "a", .communicates = false});
  plan.add(device(0, 0));
  plan.finish();
  EXPECT_EQ(number(plan, 0, 0), 0);
  EXPECT_EQ(plan.number("launcher"), 8);
  EXPECT_EQ(plan.number("met later"), 9);
  EXPECT_EQ(plan.number("met later"), 9);
}

TEST(DevicePlan, BelievesNoNumberThatNoHostHas) {
  DevicePlan plan;
  PlannedDevice wild = device(0, INT32_MAX);
  wild.node_rank = INT32_MAX;
  plan.add(wild);
  plan.add(device(0, 1));
  plan.finish();
  EXPECT_NE(plan.number(wild.key), number(plan, 0, 1));
  EXPECT_LT(plan.number(wild.key), 8);
}

}  // namespace
}  // namespace lockstep::readers::common
