// SPDX-License-Identifier: Apache-2.0
// What one training step calls, as data. A unit is what one launch carries: a collective, or a group of sends
// and receives; before it lies the compute that produces its input. Ranks of a pipeline stage share a
// program; faults replace a rank's program of one step.
#pragma once
#include <cstdint>
#include <vector>

#include "job/layout.h"

namespace lockstep::sim::job {

enum class Func : uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSend, kRecv };
enum class DataType : uint8_t { kInt8, kInt64, kBfloat16, kFloat32 };

const char* name_of(Func func);
const char* name_of(DataType type);
uint32_t size_of(DataType type);

struct Task {
  Func func = Func::kAllReduce;
  DataType type = DataType::kFloat32;
  uint64_t count = 0;
  int root = 0;   // rank in the group
  int peer = -1;  // of a send or receive, rank in the group
  bool is_p2p() const { return func == Func::kSend || func == Func::kRecv; }
  uint64_t bytes() const { return count * size_of(type); }
  // Of the whole collective: NCCL counts a rank's part of an all-gather and reduce-scatter.
  uint64_t message_bytes(int ranks) const {
    const bool in_parts = func == Func::kAllGather || func == Func::kReduceScatter;
    return bytes() * static_cast<uint64_t>(in_parts ? ranks : 1);
  }
  bool operator==(const Task&) const = default;
};

struct Unit {
  Dim dim = Dim::kWorld;
  bool blocks = true;       // compute goes on only after it; otherwise it overlaps
  bool joins = false;       // starts only after everything before it in the step
  bool alltoall = false;    // its sends and receives come from one AlltoAll call
  double compute_us = 0;    // before it
  std::vector<Task> tasks;  // one collective, or sends and receives
};
using Program = std::vector<Unit>;

struct ProgramSizes {
  int ops_per_step = 40;
  double compute_us = 500;  // of a layer's forward
};
enum class Phase : uint8_t { kTraining, kEvaluation };  // evaluation: the same layers, forward only
// The program of each pipeline stage: `ops_per_step` tasks of training where the layout allows that number.
std::vector<Program> make_programs(const Layout& layout, const ProgramSizes& sizes, const Random& random,
                                   Phase phase = Phase::kTraining);

uint64_t tasks_of(const Program& program);

}  // namespace lockstep::sim::job
