// SPDX-License-Identifier: Apache-2.0
// What happened in a simulated job, in true time (ns since the job began): per rank and unit, in the order of
// calls. Filled by Simulation; read by the writers and by tests.
#pragma once
#include <cstdint>
#include <vector>

namespace lockstep::sim::job {

inline constexpr int64_t kNever = -1;

struct RankTimeline {
  std::vector<int64_t> called;   // the host called it
  std::vector<int64_t> entered;  // its kernel began
  std::vector<int64_t> ended;    // its kernel ended
  std::vector<int64_t> met;      // everyone that it waits for had entered
  // Over the network: when the one it sends to had launched it, and the one it receives from entered. Empty
  // unless asked for.
  std::vector<int64_t> next_launched, previous_entered;
  std::vector<uint32_t> step_begin;  // by step: its first unit
  std::vector<int64_t> step_began;   // by step: the host began it
  int64_t left = kNever;             // the process ended, in order or not
  size_t units() const { return called.size(); }
};

struct Timeline {
  std::vector<RankTimeline> ranks;
  int64_t last = 0;         // the latest thing that happened
  int64_t killed = kNever;  // all processes, at that moment; what comes after it never happened
  bool finished = false;    // every rank did everything
};

}  // namespace lockstep::sim::job
