// SPDX-License-Identifier: Apache-2.0
#include "capture/core/log/histogram_cell.h"

#include <gtest/gtest.h>

namespace lockstep::capture {
namespace {

TEST(HistogramCell, SizeBucketsRoundUp) {
  for (auto [bytes, bucket] :
       {std::pair{0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {1024, 10}, {1025, 11}}) {
    EXPECT_EQ(size_bucket(static_cast<uint64_t>(bytes)), static_cast<uint64_t>(bucket)) << bytes;
  }
  EXPECT_EQ(size_bucket(~uint64_t{0}), 64u);
}

TEST(HistogramCell, EveryDurationHasABucket) {
  format::HistogramCell cell{};
  for (uint64_t ns : {uint64_t{0}, uint64_t{1023}, uint64_t{1024}, uint64_t{2047}, uint64_t{2048},
                      uint64_t{1} << 28, ~uint64_t{0} >> 8}) {
    add_duration(&cell, ns);
  }
  EXPECT_EQ(cell.timed, 7u);
  EXPECT_EQ(cell.buckets[0], 2u);
  EXPECT_EQ(cell.buckets[1], 2u);
  EXPECT_EQ(cell.buckets[2], 1u);
  EXPECT_EQ(cell.buckets[format::kHistogramBuckets - 1], 2u);
  EXPECT_EQ(cell.min_ns, 0u);
  EXPECT_EQ(cell.max_ns, ~uint64_t{0} >> 8);
}

}  // namespace
}  // namespace lockstep::capture
