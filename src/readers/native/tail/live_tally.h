// SPDX-License-Identifier: Apache-2.0
// Counts of everything that one process file says, by communicator and function, for who follows the file
// from its beginning (LiveTail with Depth::kAll). Counts only grow. Memory is bounded: by kMostFunctions, and
// by kMostPending operations whose GPU work is under way. Times in ns, sizes as nccl-tests counts them
// (model/names/operation_size.h).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "format/counted.h"

namespace lockstep::readers::native {

// Values in buckets with fixed upper bounds, of which the last is infinity.
template <const auto& kBounds>
struct LiveHistogram {
  std::array<uint64_t, std::size(kBounds) + 1> counts{};
  double sum = 0;

  void add(double value) {
    auto at = std::lower_bound(std::begin(kBounds), std::end(kBounds), value) - std::begin(kBounds);
    ++counts[static_cast<size_t>(at)];
    sum += value;
  }
};
inline constexpr std::array<double, 16> kSecondsBounds = {5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3,
                                                          2e-3, 5e-3, 1e-2, 5e-2, 0.1,  1,    10,   60};
// Bytes per second.
inline constexpr std::array<double, 16> kBandwidthBounds = {
    1e8, 1e9, 5e9, 1e10, 2e10, 4e10, 7e10, 1e11, 1.5e11, 2e11, 2.5e11, 3e11, 3.5e11, 4e11, 4.5e11, 9e11};
using SecondsHistogram = LiveHistogram<kSecondsBounds>;
using BandwidthHistogram = LiveHistogram<kBandwidthBounds>;

// Where a time on the GPU comes from.
enum class LiveSource : uint8_t { kChannels, kKernel, kApi };
inline constexpr size_t kLiveSources = 3;
// Bandwidth says something of a link only where an operation is large: under 64 KiB, under 4 MiB, more.
inline constexpr size_t kLiveSizes = 3;
constexpr size_t live_size(double bytes) { return bytes < 65536 ? 0 : bytes < 4194304 ? 1 : 2; }

// Of one function on one communicator, since the file began.
struct LiveCounts {
  format::Counted<uint64_t, double> counted;
  SecondsHistogram call_seconds;  // the host's call, from its begin to its return
  std::array<SecondsHistogram, kLiveSources> gpu_seconds;
  std::array<std::array<BandwidthHistogram, kLiveSizes>, kLiveSources> bandwidth;
};

// One file, one thread. Counters for monitoring, hence sums and histograms, and no single operation.
class LiveTally {
 public:
  static constexpr size_t kMostFunctions = 512, kMostPending = 1024;
  using Key = std::pair<uint32_t, std::string>;  // communicator's number in the process, function
  struct Operation {
    uint32_t comm = 0;
    std::string_view func;
    int64_t ranks = -1;     // of the communicator; -1 unknown
    double bytes = 0;       // as the caller or NCCL counted them
    bool declared = false;  // through lockstep.h
  };

  // What the program asked for, and when its call returned; `ns` below 0 is not counted.
  void call(const Operation& op);
  void call_ended(uint32_t comm, std::string_view func, int64_t ns);
  // What NCCL enqueued. `channels` will report GPU work under `handle`; 0: nothing will.
  void task(const Operation& op, uint64_t handle, uint32_t channels);
  // Ring retention has written an open event again, whose GPU work comes under the handle that was issued for
  // it. `is_last`: it is the last thing that call() or task() counted, and is counted once.
  void moved(uint64_t handle, uint64_t issued, bool is_last);
  // GPU work of one channel of a task; raw ns of the GPU's clock.
  void channel(uint64_t task, uint64_t gpu_start, uint64_t gpu_stop);
  // How long the GPU worked on an operation, whoever measured it. 0 and less: no time.
  void gpu_time(const Operation& op, int64_t ns, LiveSource source);
  // A communication kernel of which only its name is known: counted under no communicator.
  void kernel(std::string_view func, int64_t ns);

  const std::map<Key, LiveCounts>& counts() const { return counts_; }
  // Functions that were counted under "other", as there were too many.
  uint64_t overflows() const { return overflows_; }

 private:
  // A task and the GPU work of it that has ended so far, in raw ns of the GPU's clock.
  struct Pending {
    Operation op;           // its func: a key of counts_
    uint32_t channels = 0;  // 0: the task has not been read yet; its GPU work may come before it
    uint32_t ended = 0;     // of them
    uint64_t gpu_start = UINT64_MAX, gpu_stop = 0;
  };
  // What call() or task() did last, as it may have to be taken back.
  struct Last {
    LiveCounts* counts = nullptr;
    bool is_task = false;
    double bytes = 0;
  };
  // May drop the oldest one that waits, to make room.
  Pending& pending(uint64_t handle);
  void finish_if_whole(uint64_t handle);
  void uncount_last();
  std::map<Key, LiveCounts>::iterator at(uint32_t comm, std::string_view func);

  std::map<Key, LiveCounts> counts_;
  std::unordered_map<uint64_t, Pending> pending_;  // by handle of the task
  std::deque<uint64_t> pending_order_;
  Last last_;
  uint64_t overflows_ = 0;
};

}  // namespace lockstep::readers::native
