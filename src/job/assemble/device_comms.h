// SPDX-License-Identifier: Apache-2.0
// Which launch of RCCL's a kernel on an AMD GPU is of, where thread and time alone do not say it: by the
// communicator on the GPU, the first argument of RCCL's kernels.
//
//   Versions 1 to 4 of the profiler's API report no launches: a kernel is its plan's if it is the only one
//   that its thread launched since the plan before.
//   Kernels that are known to be of a communicator teach its address. The others at that address are its, in
//   the order of their launches: they are joined between two known ones, if there are as many of them as of
//   launches. What is left over are replays of a graph (GraphReplays).
//
// An address at which two communicators were seen, and a communicator with two addresses, join nothing. Nor
// does order where records are missing, or were not wanted for a while.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "job/assemble/kernel_works.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

class DeviceComms {
 public:
  // Reads calls, launches and kernels, and adds to the losses of `trace`.
  explicit DeviceComms(model::Trace& trace);

  // Row of calls: the KernelLaunch of a kernel that was launched outside of it, or its plan where there are
  // no KernelLaunches; kNoRow not known.
  uint32_t call_of(uint32_t launch) const { return launch < call_.size() ? call_[launch] : model::kNoRow; }
  // Kernels of a communicator which has captured launches, and that are of none of its others. Rows of
  // launches in the order of time; kernels: their kernels; kNoRow: not known when it ran.
  struct Replays {
    uint32_t comm;
    std::vector<uint32_t> launches, kernels;
  };
  std::span<const Replays> replays() const { return replays_; }
  bool is_replay(uint32_t launch) const { return launch < is_replay_.size() && is_replay_[launch]; }

 private:
  struct Item {  // a launch of a kernel
    uint64_t key;
    int64_t start_ns;
    uint32_t launch;
    uint32_t call;  // known; or kNoRow
    auto operator<=>(const Item&) const = default;
  };
  struct Sequence {
    std::span<const Item> items;
    uint32_t comm;
    std::span<const uint32_t> units;
  };
  using Units = std::map<uint32_t, std::vector<uint32_t>>;  // by communicator: rows of calls

  void list_items();
  void list_units();
  void find_plans();
  void find_kernels();
  std::map<uint64_t, uint32_t> comms_of_keys();
  void join(const Sequence& sequence);
  bool join_part(std::span<const Item> items, std::span<const uint32_t> units,
                 std::vector<uint32_t>& left_over);
  bool can_be(const Item& item, uint32_t unit) const;
  void keep_replays(uint32_t comm, std::vector<uint32_t> launches);

  model::Trace& trace_;
  std::vector<Item> items_;
  Units units_, captured_;
  bool has_launches_ = false;            // KernelLaunches
  std::vector<uint32_t> kernel_, call_;  // by row of launches
  std::vector<bool> is_replay_;
  std::vector<Replays> replays_;
  uint64_t by_order_ = 0;
};

}  // namespace lockstep::job::assemble
