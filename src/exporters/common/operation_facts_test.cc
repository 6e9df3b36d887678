// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/operation_facts.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "exporters/common/process_slices.h"
#include "exporters/common/process_walk.h"
#include "model/testing/synthetic_run.h"

namespace lockstep::exporters::common {
namespace {

using model::Trace;

Trace ring(size_t rank, bool has_forgotten) {
  Trace trace;
  model::testing::SyntheticRun run(model::testing::SyntheticOptions{});
  EXPECT_TRUE(run.load(rank, trace));
  trace.comms.numbered[0] = 0;
  if (has_forgotten) trace.lose(0, "capture", "overwritten", 3, "older events");
  return trace;
}

std::set<uint64_t> keys_of(const Trace& trace) {
  const OperationFacts facts(trace, 0);
  std::set<uint64_t> keys;
  for (uint32_t op = 0; op < trace.ops.size(); ++op) keys.insert(facts.rank_key(op));
  return keys;
}

TEST(OperationFacts, RanksShareKeysOnlyWhereTheyCountAlike) {
  const std::set<uint64_t> first = keys_of(ring(0, false)), second = keys_of(ring(1, false));
  std::set<uint64_t> both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                        std::inserter(both, both.end()));
  EXPECT_GE(both.size(), 20u);
  EXPECT_FALSE(both.contains(0));
  EXPECT_EQ(keys_of(ring(1, true)), std::set<uint64_t>{0}) << "its 7th may be another rank's 10th";
}

TEST(ViewerNumbers, StayWhereViewersKnowTheirPids) {
  Trace trace = ring(0, false);
  ViewerNumbers numbers;
  std::set<int64_t> taken;
  for (const int32_t rank : {0, 21'473, 21'474, 1'000'000, INT32_MAX, 0, -1, 20'000}) {
    trace.processes.rank[0] = rank;
    const int64_t number = numbers.of(trace);
    EXPECT_TRUE(taken.insert(number).second) << rank;
    EXPECT_LE(number * kPidStride + kPidStride - 1, std::numeric_limits<int32_t>::max()) << rank;
    EXPECT_TRUE(rank != 21'473 || number == rank);
  }
  // More of them than numbers.
  trace.processes.rank[0] = -1;
  for (int i = 0; i < 22'000; ++i) EXPECT_TRUE(taken.insert(numbers.of(trace)).second) << i;
}

TEST(ProcessSlices, ADeviceOfAnyNumberIsHarmless) {
  Trace trace = ring(0, false);
  trace.processes.device[0] = INT32_MAX;
  ASSERT_GT(trace.kernels.size(), 0u);
  trace.kernels.gpu[0] = 77;
  const ProcessSlices slices(trace, 0);
  EXPECT_FALSE(slices.slices().empty());
}

}  // namespace
}  // namespace lockstep::exporters::common
