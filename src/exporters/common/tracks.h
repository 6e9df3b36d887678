// SPDX-License-Identifier: Apache-2.0
// Where an event is drawn. Viewers want the complete events of one (pid, tid) to nest or to be apart, and
// drop those that cross; work that really overlaps (proxy steps in flight, kernels on several streams) is
// spread over lanes, each a track.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::exporters::common {

struct Track {
  int64_t pid = 0;
  int64_t tid = 0;
  std::string name;
  uint64_t sort_index = 0;  // set by the table: order of adding, lanes behind their first one
};

enum class SliceKind : uint8_t {
  kStep,
  kRecordParamComms,
  kCall,
  kKernel,
  kOtherKernel,  // no operation's
  kLaunch,
  kRange,
  kChannel,
  kProxyOp,
  kProxyStep,
  kProxyCtrl,
  kNetEvent
};

struct Slice {
  int64_t start = 0;
  int64_t end = 0;
  uint32_t track = 0;
  uint32_t row = 0;  // in the table of its kind
  SliceKind kind = SliceKind::kCall;
};

// What a track stands for; the meaning of the numbers is the caller's, per group.
struct TrackKey {
  uint32_t group = 0, a = 0, c = 0;
  uint64_t b = 0;
  bool operator==(const TrackKey&) const = default;
};

// The tracks of one process of the job.
class TrackTable {
 public:
  // The track of the key; `added` says that it is new and is to be defined.
  uint32_t find(const TrackKey& key, bool& added);
  void define(uint32_t track, Track value);
  uint32_t add(Track track);
  // A further lane of a track.
  uint32_t add_lane(uint32_t track, size_t lane);
  const Track& operator[](uint32_t track) const { return tracks_[track]; }
  size_t size() const { return tracks_.size(); }

 private:
  struct Hash {
    size_t operator()(const TrackKey& key) const;
  };
  std::vector<Track> tracks_;
  std::unordered_map<TrackKey, uint32_t, Hash> by_key_;
};

inline constexpr size_t kMaxLanes = 64;
inline constexpr int64_t kFirstLaneTid =
    1'000'000'000;  // tids of second and further lanes; above Linux' largest tid

// Sorts slices by track and time, enclosing ones first, and moves those that cross others to further lanes,
// adding tracks for them. Returns how many slices were cut short because kMaxLanes lanes were taken.
uint64_t assign_lanes(std::vector<Slice>& slices, TrackTable& tracks);

}  // namespace lockstep::exporters::common
