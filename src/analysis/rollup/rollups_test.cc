// SPDX-License-Identifier: Apache-2.0
#include "analysis/rollup/rollups.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::rollup {
namespace {

using model::Rollup;
using testing::JobBuilder;

// Steps of all ranks 100 ms apart, on the GPU for 1 ms after the last has come; rank 3 works 30 ms longer
// from `late_from` on.
model::Job steps_of(uint32_t ranks, uint32_t steps, uint32_t late_from) {
  JobBuilder builder(ranks, 2);
  const uint32_t world = builder.world();
  for (uint32_t step = 0; step < steps; ++step) {
    const double begin = 100.0 * step, last = begin + (step >= late_from ? 30 : 0);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const double called = rank == 3 ? last : begin + 0.001 * rank;
      builder.call(
          rank, world,
          {.called_ms = called, .bytes = 1 << 20, .gpu_start_ms = called + 0.1, .gpu_end_ms = last + 1.1});
    }
  }
  return builder.build();
}

TEST(Rollups, AreSumsOfEachMinute) {
  const model::Job job = steps_of(4, 1200, 1200);
  const std::vector<Rollup> rows = rollups(job);
  std::map<std::pair<uint32_t, int64_t>, uint64_t> ops;
  uint64_t moved = 0;
  for (const Rollup& row : rows) {
    ops[{row.process, row.minute}] += row.ops;
    moved += row.moved_ops;
    EXPECT_EQ(row.bytes, row.ops << 20);
    EXPECT_EQ(row.size_bits, 21);
    EXPECT_EQ(row.timed, row.ops);
    EXPECT_EQ(row.late_ops, 0u);
    EXPECT_NEAR(row.bus_bytes, static_cast<double>(row.moved_ops) * 1.5 * (1 << 20), 1) << "2 (n - 1) / n";
    if (row.moved_ops > 0) {
      EXPECT_NEAR(row.bus_bytes / row.moving_ns, 1.5 * (1 << 20) / 1e6, 0.01);
    }
  }
  EXPECT_EQ(ops.size(), 4u * 3) << "two minutes from the middle of one on";
  for (const auto& [key, count] : ops) EXPECT_LE(count, 600u);
  EXPECT_EQ(moved, 1200u) << "an operation counts once";
}

TEST(Rollups, BlameWhoIsLate) {
  const model::Job job = steps_of(4, 100, 50);
  double blamed[4] = {}, waited[4] = {};
  uint64_t late[4] = {}, compared = 0, binned = 0;
  for (const Rollup& row : rollups(job)) {
    blamed[row.process] += row.blamed_ns;
    waited[row.process] += row.waited_ns;
    late[row.process] += row.late_ops;
    compared += row.compared;
    for (const auto& [bin, count] : row.late_ns.counts()) binned += count;
  }
  EXPECT_EQ(late[0] + late[1] + late[2], 0u);
  EXPECT_GE(late[3], 48u);
  EXPECT_NEAR(blamed[3], 50 * 30e6, 0.05 * 50 * 30e6);
  EXPECT_NEAR(waited[0], 50 * 30e6, 0.05 * 50 * 30e6);
  EXPECT_LT(waited[3], 1e6);
  EXPECT_EQ(compared, 400u);
  EXPECT_EQ(binned, 400u);
}

TEST(Rollups, HaveEachKeyOnceInOrder) {
  JobBuilder builder(2);
  const uint32_t a = builder.world("a"), b = builder.world("b");
  for (int step = 0; step < 20; ++step) {
    for (uint32_t rank : {0u, 1u}) {
      builder.call(rank, step % 2 == 0 ? a : b,
                   {.called_ms = 10.0 * step, .bytes = uint64_t{1} << (10 + step % 4)});
      builder.call(
          rank, a,
          {.func = rank == 0 ? "Send" : "Recv", .called_ms = 10.0 * step + 1, .peer = rank == 0 ? 1 : 0});
    }
  }
  const model::Job job = builder.build();
  const std::vector<Rollup> rows = rollups(job);
  uint64_t ops = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    ops += rows[i].ops;
    if (i > 0 && rows[i].process == rows[i - 1].process) {
      EXPECT_LT(rows[i - 1].key(), rows[i].key());
    }
  }
  EXPECT_EQ(ops, 80u);
  EXPECT_EQ(rows.size(), 2u * (2 + 2 + 1)) << "sizes on each communicator, and transfers";
}

TEST(Bins, AreQuartersOfOctaves) {
  model::Bins bins;
  for (const double value : {-1.0, 0.0, 1.0, 1e6, 1.05e6, 1e300}) bins.add(value);
  EXPECT_EQ(bins.counts(), (std::vector<std::pair<uint8_t, uint32_t>>{{0, 2}, {4, 1}, {80, 2}, {255, 1}}));
}

}  // namespace
}  // namespace lockstep::analysis::rollup
