// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/tracks.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::exporters::common {
namespace {

Slice slice(int64_t start, int64_t end, uint32_t row) { return {start, end, 0, row, SliceKind::kCall}; }

void expect_nested(const std::vector<Slice>& slices) {
  std::map<uint32_t, std::vector<const Slice*>> by_track;
  for (const Slice& s : slices) by_track[s.track].push_back(&s);
  for (const auto& [track, list] : by_track) {
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t j = i + 1; j < list.size(); ++j) {
        const Slice &a = *list[i], &b = *list[j];
        bool apart = a.end <= b.start || b.end <= a.start;
        bool inside = (a.start <= b.start && b.end <= a.end) || (b.start <= a.start && a.end <= b.end);
        EXPECT_TRUE(apart || inside) << track << ": " << a.row << " crosses " << b.row;
      }
    }
  }
}

TEST(Lanes, NestedAndSeparateSlicesStayTogether) {
  TrackTable tracks;
  tracks.add({1, 2, "thread"});
  std::vector<Slice> slices = {slice(20, 30, 0), slice(0, 10, 1), slice(0, 5, 2), slice(5, 10, 3),
                               slice(10, 20, 4)};
  EXPECT_EQ(assign_lanes(slices, tracks), 0u);
  EXPECT_EQ(tracks.size(), 1u);
  expect_nested(slices);
}

TEST(Lanes, CrossingSlicesAreSpread) {
  TrackTable tracks;
  tracks.add({1, 2, "thread"});
  std::vector<Slice> slices;
  for (uint32_t i = 0; i < 12; ++i) slices.push_back(slice(i * 10, i * 10 + 35, i));
  EXPECT_EQ(assign_lanes(slices, tracks), 0u);
  EXPECT_EQ(tracks.size(), 4u);
  EXPECT_EQ(tracks[1].name, "+1 thread");
  EXPECT_EQ(tracks[1].pid, 1);
  EXPECT_NE(tracks[1].tid, tracks[2].tid);
  expect_nested(slices);
}

TEST(Lanes, TooManyAreCutAndCounted) {
  TrackTable tracks;
  tracks.add({1, 2, "thread"});
  std::vector<Slice> slices;
  for (uint32_t i = 0; i < 200; ++i) slices.push_back(slice(i, i + 1000, i));
  EXPECT_EQ(assign_lanes(slices, tracks), 200 - kMaxLanes);
  EXPECT_EQ(tracks.size(), kMaxLanes);
  expect_nested(slices);
}

}  // namespace
}  // namespace lockstep::exporters::common
