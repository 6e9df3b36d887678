// SPDX-License-Identifier: Apache-2.0
// What one process of the job looks like as tracks and slices, before any text is made.
//
//   pid number*100000 + 1         host process: threads by their real ids (0 would be the idle process to
//                                 Perfetto)
//   pid number*100000 + 10 + dev  its GPUs: a track per stream, or comm where the stream is unknown
//   pid number*100000 + 40000     the channels of its kernels as the host saw them: a track per comm and
//                                 channel
//   pid number*100000 + 50000     its network side: a track per proxy thread, comm, channel and direction
//
// Viewers fold by pid and cut long names, so what tells neighbouring tracks apart stands first. They keep
// processes side by side, so a host is in the names of its processes.
//
// `number` is the rank, or a free one where ranks are unknown or repeated.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exporters/common/tracks.h"
#include "model/trace.h"

namespace lockstep::exporters::common {

inline constexpr int64_t kPidStride = 100000;
inline constexpr int64_t kHostPid = 1, kGpuPid = 10, kChannelPid = 40000, kNetworkPid = 50000;
inline constexpr int64_t kUnknownTid = 999'999'999;
inline constexpr int64_t kFirstRangeTid = 900'000'000;  // of tracks beside threads; above Linux' largest tid

struct ViewerProcess {
  int64_t pid = 0;
  std::string name, label;
  int64_t sort_index = 0;
};

struct Interval {
  int64_t start = 0;  // 0 unknown
  int64_t end = 0;    // 0 never
};
// When the host was in an operation: its API call, else (NCCL before 2.28) its enqueueing.
Interval host_interval(const model::Trace& trace, uint32_t op);

enum class Detail {
  kAll,
  kCallsAndKernels,  // no channels and no network; of operations, the host's part only where no call says it
};

class ProcessSlices {
 public:
  ProcessSlices(const model::Trace& trace, int64_t number, Detail detail = Detail::kAll);
  const std::vector<Slice>& slices() const { return slices_; }
  const TrackTable& tracks() const { return tracks_; }
  const std::vector<ViewerProcess>& viewer_processes() const { return viewer_processes_; }
  // Of its host process, which is the first of them.
  int64_t host_pid() const { return number_ * kPidStride + kHostPid; }
  // Tracks of the threads that made marks: marks are drawn as instants there.
  uint32_t thread_track(uint32_t thread);
  // Events left out because nobody knows when they began, and slices cut short (see assign_lanes).
  void report_losses(model::Trace& run) const;

 private:
  void add(SliceKind kind, uint32_t row, uint32_t track, int64_t start, int64_t end);
  void add_steps();
  void add_ops();
  void add_other_kernels();
  void add_launches();
  void add_ranges();
  void add_calls();
  void add_channels();
  void add_proxy();
  // The track of a key; `make` says what it is when it is new.
  template <class Make>
  uint32_t track(const TrackKey& key, Make&& make) {
    bool added = false;
    uint32_t track = tracks_.find(key, added);
    if (added) tracks_.define(track, make());
    return track;
  }
  int32_t gpu_of_comm(uint32_t comm) const;
  int32_t device_of(int32_t gpu);
  uint32_t stream_track(int32_t gpu, uint64_t stream);
  Track gpu_track(int32_t gpu, std::string name);
  Track channel_track(std::string name);
  Track network_track(std::string name);
  void name_pid(int64_t pid, const std::string& name, const std::string& label, int64_t sort_index);
  std::string comm_name(uint32_t comm) const;

  const model::Trace& trace_;
  const int64_t number_;
  const Detail detail_;
  int64_t last_ns_ = 0;
  std::string who_;      // "rank 3"
  std::string on_host_;  // " (node1)"; empty where the host has no name
  TrackTable tracks_;
  std::vector<Slice> slices_;
  std::vector<ViewerProcess> viewer_processes_;
  std::map<int32_t, int32_t> devices_;  // by run-wide number: as the process counts them
  int64_t next_range_tid_ = kFirstRangeTid;
  int64_t next_gpu_tid_ = 1, next_channel_tid_ = 1, next_network_tid_ = 1;
  uint64_t without_time_ = 0, cut_short_ = 0;
};

}  // namespace lockstep::exporters::common
