// SPDX-License-Identifier: Apache-2.0
// What a fault does to a job, as data: the simulation and the writers look these up and know no fault by
// name. Empty for a healthy job.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "job/step_program.h"

namespace lockstep::sim::job {

struct Position {
  int step = -1, unit = -1;
  auto operator<=>(const Position&) const = default;
};

// A rank calls nothing from a position on, once all it called before is done.
struct Stop {
  enum class Manner : uint8_t {
    kElsewhere,     // its process lives and does something else
    kFinished,      // its process ended in order
    kStopped,       // its process is stopped, as by SIGSTOP
    kKilled,        // its process was killed there
    kKilledInside,  // the same, after calling the unit
    kInInit,        // it creates the communicator of `new_group`, and never comes back
  };
  Position at;
  Manner manner = Manner::kElsewhere;
};

// Lost time of a rank in steps [from_step, until_step).
struct Delay {
  int rank = 0;
  int from_step = 0, until_step = INT32_MAX;
  double host_us = 0;  // before its first call of the step
  double gpu_us = 0;   // spread over the step's compute
};

struct SlowEdge {
  int from = -1, to = -1;  // global ranks; -1: any
  double factor = 1;       // of the time that bytes take
};

// A function whose data takes longer from a step on, in every group.
struct SlowFunc {
  Func func = Func::kAllReduce;
  double factor = 1;
  int from_step = 0;
};

// How an operation that everybody joined comes to a halt.
enum class Halt : uint8_t { kKernel, kGpuWait, kPeerWait, kSendWait, kRecvWait };
struct HaltedOp {
  Halt how = Halt::kKernel;
  int from = -1, to = -1;  // ranks in the group of the edge at fault; -1 none
};

// A communicator that is created while the job runs.
struct NewGroup {
  Group group;           // no ranks: there is none
  std::set<int> absent;  // members that never come to create it
};

struct Disturbance {
  std::map<int, Stop> stops;  // by rank
  std::map<int, double>
      starts_ms;  // by rank: its process begins so much after the first; nobody goes on without it
  std::map<int, double> dies_after_ms;  // by rank: killed so long after the last event
  std::vector<Delay> delays;
  std::map<std::pair<int, int>, Program> programs;      // by (rank, step)
  std::map<std::pair<int, uint64_t>, HaltedOp> halted;  // by (group, index of the collective)
  std::map<int, Position> stuck_compute;                // by rank: the compute before that unit never ends
  std::set<std::pair<int, Position>> synchronous;  // by rank: the host waits for that unit before it goes on
  NewGroup new_group;
  std::vector<SlowEdge> slow_edges;
  std::vector<SlowFunc> slow_funcs;
  std::map<int, int> ring_chunks;  // by rank: ring retention of so many chunks
  std::set<int> lost_files;        // by rank
  std::set<int> socket_hosts;      // they fell back to sockets
  bool net_events = false;         // the network transport reports what it does
};

}  // namespace lockstep::sim::job
