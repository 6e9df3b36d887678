// SPDX-License-Identifier: Apache-2.0
// Viewers draw slices of one track only where they nest. Operations of several streams overlap freely, so a
// slice goes to the first lane in which it lies wholly inside what is open, or beside it. Beyond the last
// lane it is cut, which is counted: dropping it would hide that something ran.
#include "exporters/common/tracks.h"

#include <algorithm>

namespace lockstep::exporters::common {
namespace {

struct Lane {
  uint32_t track;
  std::vector<int64_t> open;  // ends of the slices that enclose the present, outermost first
};

// Forgets what has ended. Slices come by their begin, so no later one can lie inside it.
bool fits(Lane& lane, const Slice& slice) {
  while (!lane.open.empty() && lane.open.back() <= slice.start) lane.open.pop_back();
  return lane.open.empty() || slice.end <= lane.open.back();
}

// The lane for a slice: the first that it fits, else a new one, else the last one, in which it is cut.
Lane& choose(std::vector<Lane>& lanes, Slice& slice, TrackTable& tracks, uint64_t& cut) {
  for (Lane& lane : lanes) {
    if (fits(lane, slice)) return lane;
  }
  if (lanes.size() < kMaxLanes) {
    lanes.push_back({tracks.add_lane(lanes[0].track, lanes.size()), {}});
    return lanes.back();
  }
  ++cut;
  // It does not fit, so something is open there that ends after the slice begins.
  slice.end = lanes.back().open.back();
  return lanes.back();
}

}  // namespace

size_t TrackTable::Hash::operator()(const TrackKey& key) const {
  uint64_t h = key.b * 0x9e3779b97f4a7c15;
  h = (h ^ (h >> 32) ^ (uint64_t{key.group} << 48 | uint64_t{key.c} << 24) ^ key.a) * 0x9e3779b97f4a7c15;
  return h ^ (h >> 29);
}

uint32_t TrackTable::find(const TrackKey& key, bool& added) {
  auto [place, is_new] = by_key_.try_emplace(key, static_cast<uint32_t>(tracks_.size()));
  added = is_new;
  if (is_new) add({});
  return place->second;
}

uint32_t TrackTable::add(Track track) {
  // Leaves room for the further lanes of each track, which are added later and shown behind it.
  track.sort_index = tracks_.size() * kMaxLanes;
  tracks_.push_back(std::move(track));
  return static_cast<uint32_t>(tracks_.size() - 1);
}

void TrackTable::define(uint32_t track, Track value) {
  value.sort_index = tracks_[track].sort_index;
  tracks_[track] = std::move(value);
}

uint32_t TrackTable::add_lane(uint32_t track, size_t lane) {
  Track value = tracks_[track];
  uint64_t sort_index = value.sort_index + lane;
  value.name = "+" + std::to_string(lane) + " " + value.name;
  value.tid = kFirstLaneTid + static_cast<int64_t>(tracks_.size());
  uint32_t added = add(std::move(value));
  tracks_[added].sort_index = sort_index;
  return added;
}

uint64_t assign_lanes(std::vector<Slice>& slices, TrackTable& tracks) {
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    if (a.track != b.track) return a.track < b.track;
    if (a.start != b.start) return a.start < b.start;
    if (a.end != b.end) return a.end > b.end;
    // Kind and row make the order total: one run gives the same file each time.
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.row < b.row;
  });
  uint64_t cut = 0;
  std::vector<Lane> lanes;
  uint32_t current = ~uint32_t{0};
  for (Slice& slice : slices) {
    if (slice.track != current) {
      current = slice.track;
      lanes.assign(1, {current, {}});
    }
    Lane& lane = choose(lanes, slice, tracks, cut);
    lane.open.push_back(slice.end);
    slice.track = lane.track;
  }
  return cut;
}

}  // namespace lockstep::exporters::common
