// SPDX-License-Identifier: Apache-2.0
// One function per line of faults.def, and what they choose victims with. Used by fault.cc alone.
#pragma once
#include <string_view>

#include "job/faults/fault.h"

namespace lockstep::sim::job {

// Choices of one fault, by the seed.
class Chooser {
 public:
  explicit Chooser(const FaultInput& input) : in_(input) {}
  uint64_t below(uint64_t limit) { return in_.random.below(limit, Draw::kFault, draws_++); }
  double between(double low, double high) { return in_.random.between(low, high, Draw::kFault, draws_++); }
  int rank() { return static_cast<int>(below(static_cast<uint64_t>(in_.layout.ranks()))); }
  // In the middle of the run, and after enough of it to know what is usual.
  int step() {
    const int first = in_.steps / 3;
    return first + static_cast<int>(below(static_cast<uint64_t>(std::max(1, in_.steps * 2 / 3 - first))));
  }
  // In [first, until).
  int from(int first, int until) {
    return first + static_cast<int>(below(static_cast<uint64_t>(until - first)));
  }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  const FaultInput& in_;
  uint64_t draws_ = 0;
};

// Of the first stage.
double step_compute_us(const FaultInput& input);
// What the job takes from its first step on.
double run_us(const FaultInput& input, const Disturbance& disturbance);
// A rank whose lateness its pipeline does not hide: one of the first stage.
int first_stage_rank(const FaultInput& input, Chooser& choose);

// An operation of a rank: a unit of a step, and what it is on its communicator.
struct Target {
  int rank = 0;
  Position at;
  int group = -1;
  uint64_t index = 0;  // of the collective
  Task task;
};
const Program& program_of(const FaultInput& input, int rank);
// The target at a position; its unit is a collective.
Target target_at(const FaultInput& input, int rank, Position at);
// Units of the rank's step that are collectives and pass the test (unit, group).
template <class Test>
std::vector<int> collectives(const FaultInput& input, int rank, Test&& test) {
  std::vector<int> units;
  const Program& program = program_of(input, rank);
  for (size_t u = 0; u < program.size(); ++u) {
    const int group = input.layout.group_of(rank, program[u].dim);
    if (!program[u].tasks.front().is_p2p() && test(program[u], input.layout.group(group)))
      units.push_back(static_cast<int>(u));
  }
  return units;
}
void name_op(const Target& target, Truth* truth);

Result<FaultPlan> wrong_input(std::string text);

#define FAULT(name, function, variants, text) \
  Result<FaultPlan> function(std::string_view variant, const FaultInput& input);
#include "job/faults/faults.def"
#undef FAULT

}  // namespace lockstep::sim::job
