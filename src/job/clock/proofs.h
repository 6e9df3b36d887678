// SPDX-License-Identifier: Apache-2.0
// What the operations of a job prove about the clocks of its hosts.
//
// A rank cannot leave an operation before every rank whose data it needs has entered it. Needed is the data
// of everybody in AllReduce, AllGather, ReduceScatter and AlltoAll; of the root in Broadcast and Scatter; of
// everybody by the root alone in Reduce and Gather; of the sender by the receiver. Which times prove what:
//
//   no rank enters before   the call, the begin of its launch, the host's callback that lets a graph's replay
//                           go, and the begin of its kernel less its uncertainty. Not the enqueue of an eager
//                           operation: NCCL reports it behind the launch
//   every rank has left at  the end of its kernel plus its uncertainty; as NCCL stamps it (KernelCh), of
//                           rings alone. Nothing else: no call of NCCL waits for the GPU, so without GPU
//                           times (lite, default) nothing is proven. Times that a caller of lockstep.h gave
//                           have no uncertainty that we know
//
// An operation that holds another one, or shares its kernel, has the kernel's times: they are wider, never
// narrower.
#pragma once
#include <cstdint>
#include <vector>

#include "job/clock/offset_fit.h"
#include "model/job.h"

namespace lockstep::job::clock {

inline constexpr uint32_t kNoClock = 0xffffffff;

// One clock that processes are on. Proven when `clock` is known.
struct ClockUnit {
  model::HostClock clock;
  std::vector<OffsetFit::Contradiction> contradictions;
};

// Proves the offsets of clocks against the first one, through others where it must be. `unit_of_host`: by row
// of Job::hosts, a number below `units`, or kNoClock for hosts that do not matter.
std::vector<ClockUnit> prove(const model::Job& job, const std::vector<uint32_t>& unit_of_host,
                             uint32_t units);

}  // namespace lockstep::job::clock
