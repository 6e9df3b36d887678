// SPDX-License-Identifier: Apache-2.0
// Which kernels did which operations, where the GPU driver's tools reported the kernels. A kernel is an
// operation's when
//   the call that launched it (same correlation) lies inside a KernelLaunch of the profiler's, on the same
//   thread that KernelLaunch belongs to a kernel plan, and the plan's tasks are the operations the kernel's
//   name can stand for one of them
// NCCL reports no KernelLaunch for kernels on symmetric memory: those lie inside a GroupApi, and are its
// call's that has no task. Everything that does not fit is counted and left unjoined: a wrong kernel is worse
// than none.
//
// On AMD's GPUs the launch may not be inside: DeviceComms then says whose a kernel is. Versions 1 to 4 of the
// profiler's API report no launches, and there it names the plan itself.
//
// Without records of launching calls (CUPTI before CUDA 13) kernels and KernelLaunches are joined by their
// order, if there are equally many and all of them fit; that is a guess, and counted as one.
//
// Replays of captured graphs are the matter of GraphReplays.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "job/assemble/device_comms.h"
#include "job/assemble/kernel_works.h"
#include "job/assemble/launches.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

class KernelJoin {
 public:
  // Adds to the losses of `trace`. All outlive the object.
  KernelJoin(model::Trace& trace, const Launches& launches, const DeviceComms& device_comms,
             KernelWorks& works);

  // The kernels of an operation, as rows; none: not known which. `task` or `call` may be kNoRow.
  std::span<const uint32_t> of(uint32_t task, uint32_t call) const;
  // Whether any operation has kernels.
  bool any() const { return !units_.empty(); }

 private:
  struct Found {  // a kernel inside a call of the profiler's
    uint32_t call, kernel;
  };
  // The kernels of one such call, in kernels_.
  struct Unit {
    uint32_t call, first, count;
    bool is_given = false, has_ops = false;
  };
  // An operation in its group.
  struct Part {
    uint64_t key;  // row of its GroupApi << 32 | comm
    uint32_t task, call, plan;
  };
  using Parts = std::span<const Part>;

  void find_kernels();
  void find_by_order();
  void make_units(std::vector<Found> found);
  void list_parts();
  void list_launches();
  template <class Visit>
  void for_each_group(Visit&& visit) const;
  void check_plans(Parts parts);
  void join_by_plan(const Part& part);
  void join_plans();
  void join_other_thread(Parts parts);
  void join_symmetric(Parts parts);
  Unit* unit_of(uint32_t call);
  bool may_run(const Unit& unit, const Part& part);
  void give(const Part& part, const Unit& unit);
  bool is_captured(uint32_t call) const;
  void report();

  model::Trace& trace_;
  const Launches& launches_;
  const DeviceComms& device_comms_;
  KernelWorks& works_;
  std::vector<uint32_t> kernels_;
  std::vector<Unit> units_;             // by call
  std::vector<Part> parts_;             // by key
  std::vector<uint32_t> group_launch_;  // KernelLaunches by (GroupApi, comm)
  // By row of calls, for plans: it follows its launch; a task of it is of its launch's group; its kernel's
  // name fits a task.
  std::vector<bool> is_next_, is_proven_, fits_;
  // By row of calls, for KernelLaunches: a plan is known for it; something is missing in its group.
  std::vector<bool> has_plan_, is_doubtful_;
  std::vector<uint32_t> task_unit_, call_unit_;  // by row; kNoRow none
  uint64_t without_launch_ = 0, outside_ = 0;
  bool is_by_order_ = false;
};

}  // namespace lockstep::job::assemble
